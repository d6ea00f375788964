package runtrial

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

const (
	attemptID = "11111111-1111-1111-1111-111111111111"
	token     = int64(1) // the first that the ledger gives
	hostID    = "host"
	imageID   = "registry.example/team/digits@sha256:x"
)

const (
	theLast = berth.StrategyLast
	theBest = berth.StrategyBest
	theMean = berth.StrategyMean
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Tests look this often, and so long at most.
const (
	tick     = time.Millisecond
	patience = 10 * time.Second
)

// docks is a Docker whose containers tests play, and which fails as they say.
type docks struct {
	*fake.Docker

	mu    sync.Mutex
	calls []string // Stop and Remove, with their argument
	made  int
	asked []berth.Launch // of Ensure

	before    func(l berth.Launch) error // Ensure fails with its error, and does nothing
	ensured   func()                     // called in Ensure, when the container is there
	ensureErr error                      // of Ensure, once the container is there
	stopErrs  []error                    // of the next calls of Stop
	exitCode  int                        // after a Stop
	onStop    func(p *fake.Process)      // what the job does on SIGTERM
	gone      chan struct{}              // closed = Wait's connection breaks
	muted     func(ctx context.Context, err error) error
	logBreaks chan struct{} // closed = those of Logs break with logErr
	logErr    error
	perChunk  time.Duration       // that Logs takes
	readFrom  []berth.LogPosition // of the calls of Logs
}

func newDocks(t *testing.T) *docks {
	t.Helper()

	d := &docks{exitCode: 143, gone: make(chan struct{}), logBreaks: make(chan struct{})}
	d.Docker = fake.NewDocker("boot", imageID, d.job, nil)
	t.Cleanup(d.Close)

	d.Hook(func(h *fake.DockerHooks) {
		h.Ensure, h.Stop, h.Wait, h.Logs = d.aroundEnsure, d.aroundStop, d.aroundWait, d.aroundLogs
		h.Remove = func(ctx context.Context, id string, call func(context.Context) error) error {
			d.note("remove " + id)

			return call(ctx)
		}
	})

	return d
}

// job is what every container runs: a test prints for it and lets it exit, or
// SIGTERM ends it.
func (d *docks) job(p *fake.Process) int {
	fake.Idle(p)

	if d.onStop != nil {
		d.onStop(p)
	}

	return d.exitCode
}

func (d *docks) note(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.calls = append(d.calls, call)
}

func (d *docks) aroundEnsure(ctx context.Context, l berth.Launch, call func(context.Context) (berth.Container, error)) (berth.Container, error) {
	if d.before != nil {
		if err := d.before(l); err != nil {
			return berth.Container{}, err
		}
	}

	// Before the container runs: a test that sees it running reads its launch.
	d.mu.Lock()
	d.asked = append(d.asked, l)
	d.mu.Unlock()

	c, err := call(ctx)

	if d.ensured != nil {
		d.ensured()
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	if err == nil && !c.Adopted {
		d.made++
	}

	return c, cmp.Or(err, d.ensureErr)
}

func (d *docks) aroundStop(ctx context.Context, id string, call func(context.Context) error) error {
	d.note("stop " + id)

	d.mu.Lock()
	err := next(&d.stopErrs)
	d.mu.Unlock()

	if err != nil {
		return err
	}

	return call(ctx)
}

func (d *docks) aroundWait(ctx context.Context, _ string, call func(context.Context) (berth.Container, error)) (c berth.Container, err error) {
	if cut(ctx, d.gone, func(ctx context.Context) { c, err = call(ctx) }) {
		return berth.Container{}, berth.Errorf(berth.KindUnavailable, "Docker is away")
	}

	return c, err
}

// Logs is the fake's, in the time that Docker takes.
func (d *docks) Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error {
	d.mu.Lock()
	d.readFrom = append(d.readFrom, from)
	d.mu.Unlock()

	return d.Docker.Logs(ctx, id, from, follow, func(c berth.LogChunk) error {
		if d.perChunk > 0 {
			time.Sleep(d.perChunk)
		}

		return take(c)
	})
}

func (d *docks) aroundLogs(ctx context.Context, _ string, call func(context.Context) error) (err error) {
	d.mu.Lock()
	broken := d.logBreaks
	d.mu.Unlock()

	if cut(ctx, broken, func(ctx context.Context) { err = call(ctx) }) {
		d.mu.Lock()
		defer d.mu.Unlock()

		return d.logErr
	}

	if d.muted != nil {
		return d.muted(ctx, err)
	}

	return err
}

// cut makes a call and reports whether it was cut off.
func cut(ctx context.Context, off <-chan struct{}, call func(ctx context.Context)) bool {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var group sync.WaitGroup

	group.Go(func() {
		select {
		case <-off:
			cancel(errCut)
		case <-ctx.Done():
		}
	})

	call(ctx)
	cancel(nil)
	group.Wait()

	return errors.Is(context.Cause(ctx), errCut)
}

var errCut = errors.New("cut off")

// breakLogs ends the connections that read a log now.
func (d *docks) breakLogs(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.logErr = err
	close(d.logBreaks)
	d.logBreaks = make(chan struct{})
}

func (d *docks) called() []string {
	d.mu.Lock()
	defer d.mu.Unlock()

	return slices.Clone(d.calls)
}

// launches are those that Ensure was asked for.
func (d *docks) launches() []berth.Launch {
	d.mu.Lock()
	defer d.mu.Unlock()

	return slices.Clone(d.asked)
}

// boxes are the containers that are there, running or not.
func (d *docks) boxes(t *testing.T) []berth.Container {
	t.Helper()

	all, err := d.List(t.Context())
	require.NoError(t, err)

	return all
}

// started waits for the attempt's container.
func (d *docks) started(t *testing.T) *fake.Process {
	t.Helper()
	require.Eventually(t, func() bool { return d.Process(attemptID) != nil }, patience, tick)

	return d.Process(attemptID)
}

// books are a ledger with one attempt, which fails as tests say.
type books struct {
	*fake.Ledger

	mu      sync.Mutex
	changes []func(who *berth.Assignee) // of what the ledger says of the attempt
	running []string                    // containers
	results []berth.Result

	runningErr error
	refuse     func() error // of FinishAttempt, PutMetrics and PutLog; nil = nothing is refused
	finishErrs []error      // of the next calls
	metricErrs []error
	logErrs    []error
}

func next(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}

	err := (*errs)[0]
	*errs = (*errs)[1:]

	return err
}

func newBooks(t *testing.T) *books {
	t.Helper()

	b := &books{Ledger: fake.NewLedger(nil)}
	require.NoError(t, b.RegisterHost(t.Context(), berth.Host{ID: hostID, Name: hostID, CPUMilli: 64_000, MemoryBytes: 64 << 30}, ""))
	b.AddTrial(fake.Trial{
		ImageDigest: imageID,
		Trial:       berth.Trial{ID: "trial", SweepID: "sweep", Number: 3, ShapeKey: "shape", Params: berth.Assignment{"lr": berth.FloatValue(0.1), "units": berth.IntValue(8)}},
		Spec: berth.Spec{
			Command:   []string{"python", "train.py", "--lr={{lr}}"},
			Metrics:   berth.MetricsSpec{Source: berth.MetricsStdout},
			Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyLast},
		},
	})
	b.place(t, attemptID, 1)
	b.Hook(func(h *fake.LedgerHooks) {
		h.Assignee, h.AttemptRunning, h.FinishAttempt = b.aroundAssignee, b.aroundRunning, b.aroundFinish
		h.PutMetrics = func(ctx context.Context, _ string, call func(context.Context) error) error {
			return b.unless(ctx, &b.metricErrs, call)
		}
		h.PutLog = func(ctx context.Context, _ string, call func(context.Context) error) error {
			return b.unless(ctx, &b.logErrs, call)
		}
	})

	return b
}

// place gives an attempt of the trial its place; the attempts before it are over.
func (b *books) place(t *testing.T, attemptID string, number int) {
	t.Helper()

	demand := berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 500}
	_, err := b.RequestPlacement(t.Context(), berth.PlacementRequest{
		AttemptID: attemptID, SweepID: "sweep", TrialID: "trial", WorkflowID: "w", Number: number, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "shape", Demand: demand,
	})
	require.NoError(t, err)

	placed, err := b.Place(t.Context(), map[string]berth.Placement{attemptID: {HostID: hostID, Demand: demand}})
	require.NoError(t, err)
	require.Equal(t, []string{attemptID}, placed)
}

// says changes what the ledger says of attempts.
func (b *books) says(change func(who *berth.Assignee)) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.changes = append(b.changes, change)
}

func (b *books) aroundAssignee(ctx context.Context, _ string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
	who, err := call(ctx)

	b.mu.Lock()
	defer b.mu.Unlock()

	for _, change := range b.changes {
		change(&who)
	}

	return who, err
}

func (b *books) aroundRunning(ctx context.Context, _ string, call func(context.Context) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.runningErr != nil {
		return b.runningErr
	}

	err := call(ctx)
	if who, found := b.attempt(ctx); err == nil && found {
		b.running = append(b.running, who.ContainerID)
	}

	return err
}

func (b *books) attempt(ctx context.Context) (berth.Attempt, bool) {
	a, err := b.GetAttempt(ctx, attemptID)

	return a, err == nil
}

func (b *books) aroundFinish(ctx context.Context, r berth.Result, call func(context.Context) error) error {
	err := b.unless(ctx, &b.finishErrs, call)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()

		b.results = append(b.results, r)
	}

	return err
}

// unless makes a call, unless it is to fail.
func (b *books) unless(ctx context.Context, errs *[]error, call func(context.Context) error) error {
	b.mu.Lock()
	err := next(errs)
	if b.refuse != nil {
		err = cmp.Or(err, b.refuse())
	}
	b.mu.Unlock()

	if err != nil {
		return err
	}

	return call(ctx)
}

// memory is what the ledger has of what the attempt held over time.
func (b *books) memory(t *testing.T) []berth.MemoryPoint {
	t.Helper()

	points, err := b.ListMemory(t.Context(), attemptID)
	require.NoError(t, err)

	return points
}

// metrics are the stored points by name and step.
func (b *books) metrics(t *testing.T) map[string]berth.MetricPoint {
	t.Helper()

	points, err := b.ListMetrics(t.Context(), attemptID, "", 1<<20)
	require.NoError(t, err)

	named := make(map[string]berth.MetricPoint)
	for _, p := range points {
		named[p.Name+"/"+strings.Repeat("i", int(p.Step))] = p
	}

	return named
}

// pieces are those of the stored log, by offset.
func (b *books) pieces(t *testing.T) map[int64]berth.LogPiece {
	t.Helper()

	all, err := b.ReadLog(t.Context(), attemptID, 0, 1<<20)
	require.NoError(t, err)

	named := make(map[int64]berth.LogPiece)
	for _, p := range all {
		named[p.Offset] = p
	}

	return named
}

// text is the whole stored log; pieces must follow each other without a gap.
func (b *books) text(t *testing.T) string {
	t.Helper()

	all, err := b.ReadLog(t.Context(), attemptID, 0, 1<<20)
	require.NoError(t, err)

	var text strings.Builder

	for _, p := range all {
		require.Equal(t, int64(text.Len()), p.Offset)
		text.Write(p.Data)
	}

	return text.String()
}

func (b *books) result(t *testing.T) berth.Result {
	t.Helper()

	b.mu.Lock()
	defer b.mu.Unlock()

	require.Len(t, b.results, 1, "one result per attempt")

	return b.results[0]
}

// gauge is a meter of a container with a constant reading.
type gauge struct{ sample berth.MemorySample }

func (g gauge) Read() (berth.MemorySample, error) { return g.sample, nil }

// rig is an executor on fakes.
type rig struct {
	*Executor

	docks *docks
	books *books
	dir   string
}

func setup(t *testing.T) *rig {
	t.Helper()

	r := &rig{docks: newDocks(t), dir: t.TempDir(), books: newBooks(t)}

	open := func(berth.Container) (Meter, error) {
		return gauge{berth.MemorySample{WorkingSetBytes: 300 << 20, CPU: time.Second}}, nil
	}
	config := Config{
		DataDir: r.dir, HostID: uuid.NewString(), SampleEvery: time.Millisecond, BootID: "boot", Bounds: Bounds{LogLimit: 1 << 20},
		CPUIdle: func() (int64, int64, error) { n := time.Now().UnixNano(); return n / 2, n, nil },
	}
	r.Executor = New(r.docks, r.books, open, config, slog.New(slog.DiscardHandler))

	return r
}

// who is what the ledger says of the attempt.
func (r *rig) who(t require.TestingT) berth.Assignee {
	who, err := r.books.Assignee(context.Background(), attemptID)
	require.NoError(t, err)

	return who
}

func (r *rig) order() berth.Order { return berth.Order{AttemptID: attemptID, Token: token} }

// answer is what a Run came to.
type answer struct {
	outcome berth.Outcome
	err     error
}

// start runs the order until its end, which await waits for.
func (r *rig) start(ctx context.Context, order berth.Order) <-chan answer {
	ended := make(chan answer, 1)

	go func() {
		outcome, err := r.Run(ctx, order)
		ended <- answer{outcome, err}
	}()

	return ended
}

// begin starts the attempt, and is its container that runs.
func (r *rig) begin(t *testing.T) (*fake.Process, <-chan answer) {
	t.Helper()

	ended := r.start(t.Context(), r.order())

	return r.docks.started(t), ended
}

// came is what a run came to that ended without an error.
func came(t *testing.T, ended <-chan answer) berth.Outcome {
	t.Helper()

	got := await(t, ended)
	require.NoError(t, got.err)

	return got.outcome
}

// ends is what a run comes to whose program prints a text and exits.
func ends(t *testing.T, box *fake.Process, ended <-chan answer, text string, code int) berth.Outcome {
	t.Helper()

	box.Print(berth.Stdout, text)
	box.Exit(code)

	return came(t, ended)
}

// leave starts an attempt and detaches from it: its container runs on.
func (r *rig) leave(t *testing.T, order berth.Order) *fake.Process {
	t.Helper()

	return r.leaveAfter(t, order, func(*fake.Process) {})
}

// readFor runs an attempt for so long while say prints, then detaches.
func (r *rig) readFor(t *testing.T, d time.Duration, say func(box *fake.Process)) *fake.Process {
	t.Helper()

	return r.leaveAfter(t, r.order(), func(box *fake.Process) {
		say(box)
		time.Sleep(d)
	})
}

// leaveAfter detaches from an attempt once meanwhile has returned.
func (r *rig) leaveAfter(t *testing.T, order berth.Order, meanwhile func(box *fake.Process)) *fake.Process {
	t.Helper()

	ctx, shutdown := context.WithCancelCause(t.Context())
	ended := r.start(ctx, order)
	box := r.docks.started(t)
	meanwhile(box)
	shutdown(errors.New("the worker stops"))
	require.ErrorIs(t, await(t, ended).err, ErrDetached)

	return box
}

// seldom has the attempt sampled each second, so that hours pass quickly.
func (r *rig) seldom() { r.config.SampleEvery = time.Second }

// bubble runs a case of a test on a clock of its own.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

func await(t *testing.T, ended <-chan answer) answer {
	t.Helper()

	select {
	case a := <-ended:
		return a
	case <-time.After(time.Hour): // by a bubble's clock; go test ends others sooner
		require.Fail(t, "the attempt does not end")

		return answer{}
	}
}
