// Package activities holds the steps of workflows that have effects. Each is
// thin: it calls one small interface, sends heartbeats if it is long, and turns
// Berth's errors into Temporal's by the one table in errors.go.
package activities

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// Sweeps is the database for the steps of a sweep.
type Sweeps interface {
	Suggester

	BeginSweepRun(ctx context.Context, id, runID string) (berth.Sweep, error)
	GetSweep(ctx context.Context, id string) (berth.Sweep, error)
	SetSweepState(ctx context.Context, id string, state berth.SweepState, reason string) (changed bool, err error)
	SetMaxParallel(ctx context.Context, id string, n int) error
	// FirstTrialRan is when a sweep's first trial got its place; zero while none has.
	FirstTrialRan(ctx context.Context, id string) (time.Time, error)
}

// Trials is the database for the steps of a trial.
type Trials interface {
	TrialLister

	PlannedTrial(ctx context.Context, sweepID string, number int, stage string) (berth.PlannedTrial, error)
	// StageStates are the stages of a trial, in order.
	StageStates(ctx context.Context, sweepID string, number int) ([]berth.StageState, error)
	// BlockedTrials is how many open trials of a sweep wait for a stage that another trial runs.
	BlockedTrials(ctx context.Context, sweepID string) (int, error)
	// StagesKnown returns the keys that have an output.
	StagesKnown(ctx context.Context, keys []string) ([]string, error)
	// PausedTrials returns which of these workflows are of trials whose sweeps are paused.
	PausedTrials(ctx context.Context, workflowIDs []string) ([]string, error)
	EndedTrials(ctx context.Context, sweepID string, numbers []int) ([]berth.TrialEnd, error)
	SetTrialState(ctx context.Context, u berth.TrialUpdate) (changed bool, err error)
	Footprints(ctx context.Context, shapeKeys []string) (map[string]berth.Footprints, error)
	// AbandonAttempt fences an attempt. One that has ended stays as it is.
	AbandonAttempt(ctx context.Context, attemptID, message string) error
	// RefuseAttempt is AbandonAttempt for an attempt that must not go back to
	// its host.
	RefuseAttempt(ctx context.Context, attemptID, message string) error
	GetAttempt(ctx context.Context, id string) (berth.Attempt, error)
}

// Placements is the ledger as a trial sees it.
type Placements interface {
	ListHosts(ctx context.Context) ([]berth.Host, error)
	// RecentHosts is ListHosts and former hosts.
	RecentHosts(ctx context.Context) ([]berth.Host, error)
	RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error)
	// ResizeRequest changes the demand of a request that still waits.
	ResizeRequest(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error)
	PlacementStatus(ctx context.Context, attemptID string) (berth.PlacementStatus, error)
	WithdrawRequest(ctx context.Context, attemptID string) (berth.PlacementStatus, error)
}

// Workflows is Temporal itself, for the steps.
type Workflows interface {
	// JoinProbe starts the workflow that measures a shape, or joins the running one.
	JoinProbe(ctx context.Context, shapeKey, trialWorkflowID string) error
	// JoinStage starts the workflow that has one trial run a stage, or joins the running one.
	JoinStage(ctx context.Context, key, trialWorkflowID string) error
	// TrialEnd is how the workflow of a trial ended; nil while it goes on.
	TrialEnd(ctx context.Context, sweepID string, number int) (*berth.TrialUpdate, error)
}

// Executor runs one attempt on this host from its present state: it starts the
// container or adopts the running one. It returns the attempt's outcome once it
// is committed. When ctx ends, context.Cause decides (rule R5): berth.ErrStop stops
// the container and has an outcome, or berth.ErrNotStopped when Docker does not
// answer; anything else leaves it running.
type Executor interface {
	Run(ctx context.Context, order berth.Order) (berth.Outcome, error)
}

// Images is this host's Docker as far as images go.
type Images interface {
	// ResolveImage finds an image on this host. Errors: a *berth.SpecError when it is not there.
	ResolveImage(ctx context.Context, ref string) (berth.Image, error)
	// AskRegistry finds the digest of an image in its registry, and pulls nothing. Errors:
	// *berth.PullError; a *berth.SpecError where this host pulls no images.
	AskRegistry(ctx context.Context, ref string) (berth.Image, error)
}

// Patience is how long a silent worker is waited for. Zero values are defaults.
type Patience struct {
	Heartbeat time.Duration // without a heartbeat for this long, a worker is gone or cut off: its attempts are offered to its successor
	Host      time.Duration // attempts not picked up for this long go elsewhere; the old places stay booked until there is proof
}

// Defaults of Patience.
const (
	// defaultHeartbeatPatience is seven heartbeats, which come every 2 s: how long the
	// containers of a killed worker run before its successor follows them. A busy worker
	// that is later gets its activities a second time, and adopts the running containers.
	defaultHeartbeatPatience = 15 * time.Second
	// defaultHostPatience leaves a machine time to restart its worker.
	defaultHostPatience = 2 * time.Minute
)

// Activities are all steps. A field may be nil where its steps never run: only
// hosts have an Executor.
type Activities struct {
	Patience   Patience
	Sweeps     Sweeps
	Trials     Trials
	Placements Placements
	Workflows  Workflows
	Executor   Executor
	Images     Images
}
