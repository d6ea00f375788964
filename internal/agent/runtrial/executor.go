package runtrial

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
)

// Containers is the Docker of this host. An id may also be a name. Every call
// but Wait and Logs ends by itself when Docker hangs.
type Containers interface {
	// Name is what the attempt's container is called, whether or not it is there.
	Name(attemptID string) string
	// Ensure starts the attempt's container, or adopts the one that is there.
	// A start that can never work is a *berth.StartError.
	Ensure(ctx context.Context, l berth.Launch) (berth.Container, error)
	// Wait returns when the container has exited. Its context may be long.
	Wait(ctx context.Context, id string) (berth.Container, error)
	// Stop sends SIGTERM, and SIGKILL after grace. An absent container is a success.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Remove removes a container that does not run. An absent one is a success.
	Remove(ctx context.Context, id string) error
	// Logs calls take with the output after from, in order, and with some before
	// it (berth.LogResume). With follow it ends when the container has exited.
	Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error
}

// Records is what the database keeps of attempts. Every error of kind
// unavailable is ambiguous, the work may be done (rule R8): repeating a call
// that was done is harmless.
type Records interface {
	Assignee(ctx context.Context, attemptID string) (berth.Assignee, error)
	AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error
	// MeasureRunning teaches what an attempt holds of its GPU and has its lease follow that,
	// to most at most. It returns what the lease holds. Errors: fenced.
	MeasureRunning(ctx context.Context, attemptID string, token int64, u berth.Usage, most int64) (int64, error)
	// NoteWait stores what an attempt without a container waits for, in plain words;
	// empty = it does not wait any more.
	NoteWait(ctx context.Context, attemptID string, token int64, text string) error
	// EarlierCheckpoints says what is known of the checkpoints of the attempts before one, the newest first.
	EarlierCheckpoints(ctx context.Context, attemptID string) ([]berth.EarlierCheckpoint, error)
	// NoteResumed stores from which checkpoint an attempt goes on, in plain words.
	NoteResumed(ctx context.Context, attemptID string, token int64, text string) error
	FinishAttempt(ctx context.Context, r berth.Result) error
	// DropStageOutput forgets the output of a stage that is whole nowhere any more.
	DropStageOutput(ctx context.Context, attemptID string) error
	// HeldOutputs returns which of these attempts wrote what an unfinished trial, or a running container, needs.
	HeldOutputs(ctx context.Context, attemptIDs []string) ([]string, error)
	// ListFiles reads stored files of an attempt by path, after the given one.
	ListFiles(ctx context.Context, attemptID, after string, limit int) ([]berth.Artifact, error)
	PutMetrics(ctx context.Context, attemptID string, token int64, points []berth.MetricPoint) error
	// JudgeRung stores a report and decide's answer, once for a trial and a rung, and returns the stored answer. Errors: fenced.
	JudgeRung(ctx context.Context, attemptID string, token int64, report berth.RungReport,
		decide func(others []berth.RungValue) berth.StopDecision) (berth.StopDecision, error)
	// DropMetrics removes all points of these names.
	DropMetrics(ctx context.Context, attemptID string, token int64, names []string) error
	PutLog(ctx context.Context, attemptID string, token int64, piece berth.LogPiece) error
	// PutMemory stores what an attempt held over time, ascending; the largest figures of an interval stand.
	PutMemory(ctx context.Context, attemptID string, token int64, points []berth.MemoryPoint) error
}

// Meter reads a running container's cgroup. It fails once the container is gone.
type Meter interface {
	Read() (berth.MemorySample, error)
}

// Config are an executor's settings. Zero values are defaults.
type Config struct {
	DataDir     string        // for the attempts' directories; required
	Grace       time.Duration // between SIGTERM and SIGKILL; default 30s
	SampleEvery time.Duration // of memory; default 200ms: growth-mode footprints only rise, so 5 Hz suffices
	HostName    string        // as people call this host
	BootID      string        // of this host; a container of another boot died with it
	Bounds      Bounds        // of what an attempt may take

	// Available returns the bytes of memory that programs on this host could take
	// now. Nil = not known: a kill for the machine's want of memory is then told
	// from one for the container's limit by the kernel's log and counters alone.
	Available func() (int64, error)

	// DiskFree returns what is free of the disk that DataDir is on, and of the one
	// with Docker's logs, in bytes. Nil = not known: a trial that finds a disk full
	// then counts as failed by itself.
	DiskFree     func() (files, logs int64, err error)
	DiskHeadroom int64 // bytes; with less free, the disk counts as full

	// Pull gets an image that is missing. Nil = this host pulls none.
	Pull PullImage

	// Restore fetches a checkpoint from the store, and Fetch an object. Nil = this host has no store.
	Restore RestoreCheckpoint
	Fetch   FetchObject

	// Entrypoint reads the ENTRYPOINT of an image. Errors: *berth.StartError when the
	// image is not there. Nil = no image has one.
	Entrypoint func(ctx context.Context, image string) ([]string, error)

	// Workdir reads the working directory of an image. Nil = it stays read-only.
	Workdir ReadWorkdir

	// Proxy is the URL of the proxy that trials with a network are told of. Empty = none.
	Proxy string

	// Dataset finds the data sets of this host. Nil = it has none.
	Dataset FindDataset

	// Secret opens the secrets of sweeps. Nil = this host opens none.
	Secret OpenSecret
	// SecretsDir is where files of secrets are while their attempt runs, in a directory of
	// this host's own; default: below DataDir. Docker mounts them.
	SecretsDir string
	// HostID is the id of this host. SecretsDir needs it: hosts of one machine may share it.
	HostID string

	// MPSPipe is the directory in which the clients of a GPU's MPS daemon find it.
	// Nil = the host has no GPUs. Errors: unavailable when there is no daemon.
	MPSPipe func(deviceID string) (dir string, err error)

	// Device reads the GPU of a container. Nil = not known: nothing is learnt of
	// what a shape needs there.
	Device ReadDevice

	// CPUIdle returns how much of the host's processor time was idle since boot,
	// and how much there was, in any unit. Nil = not known: readings of CPU then
	// count as made on a full host.
	CPUIdle func() (idle, total int64, err error)
}

// Executor runs attempts in containers of this host.
type Executor struct {
	containers Containers
	records    Records
	meter      OpenMeter
	config     Config
	log        *slog.Logger
	untidy     atomic.Bool // an attempt's files are left to the reconciler
	ooms       sync.Map    // attempt id → true: Docker announced an out-of-memory
	waiting    sync.Map    // attempt id → token: its image is missing, or its checkpoint
	writing    sync.Map    // attempt id → berth.AttemptCheckpoint: its container runs
	whole      sync.Map    // directory → time.Time of the last change when the output in it was compared with its manifest
	copyLocks  sync.Map    // attempt id → *semaphore.Weighted of one: of the copy of its output

	outputBytes atomic.Int64 // as measured last
	left        hostMemory
	activity    sampling.Apportioner
	shimMu      sync.Mutex          // held while the shim's files are written
	copies      sync.Map            // archive of a working directory → workCopy
	copying     *semaphore.Weighted // of one: held while the copy of a working directory is made

	mu     sync.Mutex
	claims map[string]*claim // by attempt: what a Run is at
}

// OpenMeter finds the cgroup of a running container.
type OpenMeter func(c berth.Container) (Meter, error)

// New returns an executor.
func New(containers Containers, records Records, meter OpenMeter, config Config, log *slog.Logger) *Executor {
	config.Grace = cmp.Or(config.Grace, 30*time.Second)
	config.SampleEvery = cmp.Or(config.SampleEvery, 200*time.Millisecond)
	config.Bounds = config.Bounds.orDefault()

	return &Executor{
		containers: containers, records: timely{records}, meter: meter, config: config, log: log, claims: make(map[string]*claim),
		copying: semaphore.NewWeighted(1),
	}
}

// NoteOOM keeps Docker's word that the kernel killed a process of an attempt
// for memory: the cgroup that proves it is gone once the container has exited.
func (e *Executor) NoteOOM(attemptID string) { e.ooms.Store(attemptID, true) }

// ErrDetached is returned when ctx ended and the container goes on without us.
var ErrDetached = errors.New("detached from the attempt; its container goes on")

// Run runs an attempt to its committed outcome. Running it again, also while
// or after another Run of the same attempt was cut off, goes on from where it
// stands; a verdict that was written down is committed without Docker. Errors:
// ErrDetached; berth.ErrNotStopped; fenced when the attempt is not ours any more;
// unavailable when Docker or the database does not answer.
func (e *Executor) Run(ctx context.Context, order berth.Order) (berth.Outcome, error) {
	ctx, yield, err := e.claim(ctx, order.AttemptID)
	if err != nil {
		return berth.Outcome{}, err
	}
	defer yield()

	who, err := e.records.Assignee(ctx, order.AttemptID)
	if err != nil {
		return berth.Outcome{}, err
	}

	attempt := who.Attempt
	if attempt.State == berth.AttemptFinished && attempt.Token == order.Token {
		e.tidy(ctx, who)

		return attempt.Outcome(), nil
	}

	if attempt.Token != order.Token || attempt.State == berth.AttemptAbandoned {
		return berth.Outcome{}, berth.Errorf(berth.KindFenced, "attempt %s is not ours any more", order.AttemptID)
	}

	run := e.open(order, who)

	if v, found := run.verdict(); found {
		return run.commit(ctx, v)
	}

	if order.Stop {
		return run.giveBack(ctx)
	}

	outcome, err := run.attempt(ctx)
	if err != nil && stopped(ctx) && berth.KindOf(err) != berth.KindFenced && !errors.Is(err, berth.ErrNotStopped) {
		return run.giveBack(context.WithoutCancel(ctx)) // nobody asks again
	}

	return outcome, err
}

// stopped reports whether ctx ended with the order to stop.
func stopped(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), berth.ErrStop)
}

const (
	// commitTimeout bounds the commit of a verdict; Temporal repeats it after that.
	commitTimeout = 30 * time.Second
	// stopPatience is how long beyond its grace a container that must stop is asked to: 20 s
	// in which a client of MPS drains, and four questions of 10 s each while Docker does not
	// answer.
	stopPatience = 60 * time.Second
	// startPatience is how long a host tries to prepare an attempt, or to stop a
	// container of an earlier one: thirty tries to write, or two to stop. It is
	// half of berth.LeaseTerm, so the attempt keeps its lease.
	startPatience = 30 * time.Second
	// abandonGrace is what a container has that a newer attempt has replaced.
	abandonGrace = 5 * time.Second
	retryEvery   = time.Second
)
