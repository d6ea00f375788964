package api

import (
	"context"
	"io"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/control/report"
	"github.com/berthml/berth/workflows"
)

// Store is the database as the API sees it: *postgres.Store.
type Store interface {
	Sweeps
	Trials
	Records
	Files
	Hosts
	Secrets
	Events
	Access
	KnownImages
	Healthy
	Pinger
}

// Sweeps are the sweeps in the database.
type Sweeps interface {
	CreateSweep(ctx context.Context, n berth.NewSweep) (id string, created bool, err error)
	// SubmittedSweep is the sweep that a call with this key made; empty = none. Errors: conflict when that had another body.
	SubmittedSweep(ctx context.Context, k berth.SubmissionKey) (id string, err error)
	GetSweep(ctx context.Context, id string) (berth.Sweep, error)
	SweepRecord(ctx context.Context, id string) (berth.Sweep, error)
	DeleteSweep(ctx context.Context, id string) error
	FindSweep(ctx context.Context, prefix string) (string, error)
	OpenSweeps(ctx context.Context, person, route, key string) (open int, known bool, err error)
	// PageSweeps reads a page of sweeps with their counts. Errors: invalid for a position of another list.
	PageSweeps(ctx context.Context, q berth.SweepQuery) (berth.Page[berth.Sweep], error)
}

// Trials are the trials and attempts in the database.
type Trials interface {
	GetTrial(ctx context.Context, sweepID string, number int) (berth.Trial, error)
	ListTrials(ctx context.Context, sweepID string, states []string, after, limit int) ([]berth.Trial, error)
	// PageTrials reads a page of a sweep's trials; of a sweep that is not there, none. Errors: invalid for a position of another list.
	PageTrials(ctx context.Context, sweepID string, q berth.TrialQuery) (berth.Page[berth.ListedTrial], error)
	// TrialTimes says how long the newest trials of a sweep took that ended, and for how long the oldest attempt has run.
	TrialTimes(ctx context.Context, sweepID string) (berth.TrialTimes, error)
	GetAttempt(ctx context.Context, id string) (berth.Attempt, error)
	ListAttempts(ctx context.Context, trialID string) ([]berth.Attempt, error)
	ListSweepAttempts(ctx context.Context, sweepID string, afterTrial, afterNumber, limit int) ([]berth.SweepAttempt, error)
	// ExportTrials reads trials by number, above the given one.
	ExportTrials(ctx context.Context, sweepID string, f berth.TrialFilter, after, limit int) ([]berth.ExportedTrial, error)
	// ReportInput reads the input of a sweep's report. Errors: not_found, conflict.
	ReportInput(ctx context.Context, sweepID string) (report.Input, error)
}

// Records are the attempts' records: metrics, logs and footprints.
type Records interface {
	ListMetrics(ctx context.Context, attemptID, name string, limit int) ([]berth.MetricPoint, error)
	// ExportMetrics reads the points of a sweep behind a key, limit at most; next is where to go on, nil = there are no more.
	ExportMetrics(ctx context.Context, sweepID string, after berth.MetricKey, limit int) (points []berth.ExportedMetric, next *berth.MetricKey, err error)
	// Curves reads the trials' points of a metric, thinned to most points each. Errors: invalid when that
	// takes too long.
	Curves(ctx context.Context, sweepID, name string, numbers []int, most int) ([]berth.Curve, error)
	// ListMemory reads an attempt's memory over time, ascending.
	ListMemory(ctx context.Context, attemptID string) ([]berth.MemoryPoint, error)
	MetricNames(ctx context.Context, sweepID string) ([]berth.MetricName, error)
	ReadLog(ctx context.Context, attemptID string, offset int64, limit int) ([]berth.LogPiece, error)
	ListFootprints(ctx context.Context, after string, limit int) ([]berth.ProbedShape, error)
	FindFootprint(ctx context.Context, prefix string) (berth.ProbedShape, error)
	// RecentUsage reads the usage of a shape's newest attempts, beyond its
	// footprints.
	RecentUsage(ctx context.Context, shapeKey string) ([]berth.RecentUsage, error)
	Footprints(ctx context.Context, shapeKeys []string) (map[string]berth.Footprints, error)
	ForgetFootprint(ctx context.Context, shapeKey string) error
}

// Files are the files of attempts, as the database names them.
type Files interface {
	// FindTrial reads the sweep and the number of a trial. Errors: not_found.
	FindTrial(ctx context.Context, id string) (berth.Trial, error)
	// FileSet returns the state of the files of a trial's attempt; number 0 = the last attempt. Errors:
	// not_found.
	FileSet(ctx context.Context, trialID string, number int) (berth.FileSet, error)
	// ListFiles reads stored files by path, after the given one.
	ListFiles(ctx context.Context, attemptID, after string, limit int) ([]berth.Artifact, error)
	// GetFile reads one. Errors: not_found.
	GetFile(ctx context.Context, attemptID, path string) (berth.Artifact, error)
}

// Objects holds the contents of files: *artifacts.Store.
type Objects interface {
	// Read opens length bytes from offset on; a negative length is all of the rest. Errors: not_found, unavailable.
	Read(ctx context.Context, d berth.Digest, offset, length int64) (io.ReadCloser, error)
}

// Hosts are the machines in the database.
type Hosts interface {
	ListHosts(ctx context.Context) ([]berth.Host, error)
	// ListLeases reads the current leases, by host, GPU and age.
	ListLeases(ctx context.Context, after berth.LeaseKey, limit int) ([]berth.HeldLease, error)
	// ListQueue reads the requests that wait for a lease, by position, and their
	// number.
	ListQueue(ctx context.Context, after berth.QueueKey, limit int) (queue []berth.QueuedRequest, total int, err error)
	// ListMachine reads how full a host and its GPUs were in the time before now, by GPU and time, the host itself first.
	ListMachine(ctx context.Context, hostID string, covered, every time.Duration) ([]berth.MachinePoint, error)
	SetHostState(ctx context.Context, hostID string, state berth.HostState) error
	// GetDevice also knows GPUs whose host was removed. Errors: not_found.
	GetDevice(ctx context.Context, id string) (berth.Device, error)
	// CordonDevice keeps a GPU from taking new attempts until ReadyDevice. Errors: not_found.
	CordonDevice(ctx context.Context, id, reason string) error
	ReadyDevice(ctx context.Context, id string) error
	// RemoveHost frees the leases of a host that will not come back. Errors:
	// conflict without force while its worker answers.
	RemoveHost(ctx context.Context, hostID string, force bool) error
}

// Secrets are the sealed secrets in the database.
type Secrets interface {
	// PutSecret stores one in the place of that of its name. Errors: conflict when there are too many.
	PutSecret(ctx context.Context, sealed berth.SealedSecret, person string) (berth.Secret, error)
	// ListSecrets reads all by name.
	ListSecrets(ctx context.Context) ([]berth.Secret, error)
	// DeleteSecret deletes one. Errors: not_found; conflict without force while a sweep that has not ended mounts it.
	DeleteSecret(ctx context.Context, name string, force bool) error
}

// Sealer seals a secret under its name: *secrets.Keys.
type Sealer interface {
	Seal(name string, value []byte) (berth.SealedSecret, error)
}

// Events are the published events.
type Events interface {
	// ListEvents reads events of these sweeps; none given means all events.
	ListEvents(ctx context.Context, after int64, sweepIDs []string, limit int) ([]berth.Event, error)
	EventRange(ctx context.Context) (first, last int64, err error)
	ListenPublished(ctx context.Context, poll time.Duration, wake func()) error
}

// Access is the store of tokens and of the audit log.
type Access interface {
	// CreateToken stores a token that is valid for life, 0 = for ever.
	CreateToken(ctx context.Context, t berth.Token, life time.Duration, hash []byte) (berth.Token, error)
	TokenByHash(ctx context.Context, hash []byte) (berth.Token, error)
	ListTokens(ctx context.Context) ([]berth.Token, error)
	RevokeToken(ctx context.Context, id string) error
	CountTokens(ctx context.Context) (berth.TokenCount, error)
	// CreateSession makes a session of a token, which ends with it at the latest. Errors: not_found for a token that is not valid.
	CreateSession(ctx context.Context, tokenID string, hash []byte, life time.Duration) (expires time.Time, err error)
	// SessionByHash finds a valid session. Errors: not_found.
	SessionByHash(ctx context.Context, hash []byte) (berth.Session, error)
	DeleteSession(ctx context.Context, hash []byte) error
	Audit(ctx context.Context, e berth.AuditEntry) error
}

// KnownImages holds the digests that the machines reported.
type KnownImages interface {
	RememberImage(ctx context.Context, ref, digest string) error
	// RecallImage returns the last remembered digest. Errors: not_found.
	RecallImage(ctx context.Context, ref string) (digest string, resolvedAt time.Time, err error)
}

// Control steers running sweeps.
type Control interface {
	Update(ctx context.Context, sweepID, update string, args ...any) (workflows.SweepView, error)
	Cancel(ctx context.Context, sweepID string) error
}

// Images resolves an image, by asking a machine.
type Images interface {
	ResolveImage(ctx context.Context, ref string) (berth.Image, error)
}

// Healthy lists late and silent parts.
type Healthy interface {
	Health(ctx context.Context) (health.State, error)
}

// Pinger is a part that may be down.
type Pinger interface {
	Ping(ctx context.Context) error
}
