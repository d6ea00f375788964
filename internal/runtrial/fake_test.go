package runtrial

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

const (
	attemptID = "11111111-1111-1111-1111-111111111111"
	token     = int64(7)
)

// Tests look this often, and so long at most.
const (
	tick     = time.Millisecond
	patience = 10 * time.Second
)

// box is a container of the fake.
type box struct {
	berth.Container

	launch berth.Launch
	log    []berth.LogChunk
	more   chan struct{} // closed and replaced when the log grows or the box exits
}

// docks is a Docker that tests play the containers of.
type docks struct {
	mu    sync.Mutex
	boxes map[string]*box // by name
	calls []string        // Stop and Remove, with their argument
	made  int
	hash  string         // of the next container's label
	asked []berth.Launch // of Ensure

	ensureErr error         // once the box is there
	ensured   func()        // called in Ensure, when the box is there
	stopErrs  []error       // of the next calls of Stop
	exitCode  int           // after a Stop
	onStop    func(b *box)  // what the job does on SIGTERM
	gone      chan struct{} // closed = Wait's connection breaks
	logBreaks chan struct{} // closed = those of Logs break with logErr
	logErr    error
}

func newDocks() *docks {
	return &docks{boxes: make(map[string]*box), exitCode: 143, hash: "hash", gone: make(chan struct{}), logBreaks: make(chan struct{})}
}

func (d *docks) Name(attemptID string) string { return "berth-test-" + attemptID }

func (d *docks) find(id string) *box {
	for name, b := range d.boxes {
		if name == id || b.ID == id {
			return b
		}
	}

	return nil
}

func (d *docks) Ensure(_ context.Context, l berth.Launch) (berth.Container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	b := d.boxes[d.Name(l.AttemptID)]
	if b == nil {
		d.made++
		b = &box{launch: l, more: make(chan struct{}), Container: berth.Container{
			ID: strings.Repeat("c", 64), Name: d.Name(l.AttemptID), AttemptID: l.AttemptID, Token: l.Token, BootID: "boot",
			State: berth.ContainerRunning, StartedAt: time.Now().UTC(), SpecHash: cmp.Or(l.SpecHash, d.hash), Mounts: l.Mounts,
		}}
		d.boxes[b.Name] = b
	} else {
		b.Adopted = true
	}

	if d.ensured != nil {
		d.ensured()
	}

	d.asked = append(d.asked, l)

	if b.Token != l.Token || l.SpecHash != "" && l.SpecHash != b.SpecHash {
		return berth.Container{}, berth.Errorf(berth.KindConflict, "belongs to another launch")
	}

	return b.Container, d.ensureErr
}

func (d *docks) Wait(ctx context.Context, id string) (berth.Container, error) {
	for {
		d.mu.Lock()
		b := d.find(id)
		d.mu.Unlock()

		if b == nil {
			return berth.Container{}, berth.Errorf(berth.KindNotFound, "no container %s", id)
		}

		d.mu.Lock()
		c, more := b.Container, b.more
		d.mu.Unlock()

		if c.State == berth.ContainerExited {
			return c, nil
		}

		select {
		case <-more:
		case <-d.gone:
			return berth.Container{}, berth.Errorf(berth.KindUnavailable, "Docker is away")
		case <-ctx.Done():
			return berth.Container{}, ctx.Err()
		}
	}
}

func (d *docks) Stop(_ context.Context, id string, _ time.Duration) error {
	d.mu.Lock()
	d.calls = append(d.calls, "stop "+id)

	if len(d.stopErrs) > 0 {
		err := d.stopErrs[0]
		d.stopErrs = d.stopErrs[1:]
		d.mu.Unlock()

		return err
	}

	b, react := d.find(id), d.onStop
	d.mu.Unlock()

	if b == nil {
		return nil
	}

	if react != nil {
		react(b)
	}

	d.exit(b, d.exitCode)

	return nil
}

func (d *docks) Remove(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.calls = append(d.calls, "remove "+id)

	b := d.find(id)
	if b == nil {
		return nil
	}

	if b.State == berth.ContainerRunning {
		return berth.Errorf(berth.KindConflict, "container %s runs: stop it first", id)
	}

	delete(d.boxes, b.Name)

	return nil
}

func (d *docks) Logs(ctx context.Context, id string, from berth.LogPosition, _ bool, take func(berth.LogChunk) error) error {
	d.mu.Lock()
	broken := d.logBreaks
	d.mu.Unlock()

	for at := 0; ; {
		d.mu.Lock()
		b := d.find(id)

		if b == nil {
			d.mu.Unlock()

			return berth.Errorf(berth.KindNotFound, "no container %s", id)
		}

		chunks, more, running := b.log[at:], b.more, b.State == berth.ContainerRunning
		at = len(b.log)
		d.mu.Unlock()

		for _, c := range chunks {
			if !c.At.After(from.Stdout) {
				continue
			}

			if err := take(c); err != nil {
				return err
			}
		}

		if !running && len(chunks) == 0 {
			return nil
		}

		if len(chunks) > 0 {
			continue
		}

		select {
		case <-more:
		case <-broken:
			return d.logErr
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// breakLogs ends the connections that read a log now.
func (d *docks) breakLogs(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.logErr = err
	close(d.logBreaks)
	d.logBreaks = make(chan struct{})
}

// print adds to a container's output.
func (d *docks) print(b *box, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()

	at := noon.Add(time.Duration(len(b.log)) * time.Second)
	b.log = append(b.log, berth.LogChunk{Stream: berth.Stdout, At: at, Data: []byte(text)})
	close(b.more)
	b.more = make(chan struct{})
}

func (d *docks) exit(b *box, code int) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if b.State == berth.ContainerExited {
		return
	}

	b.State, b.ExitCode, b.FinishedAt = berth.ContainerExited, code, time.Now().UTC()
	close(b.more)
	b.more = make(chan struct{})
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

// started waits for the attempt's container.
func (d *docks) started(t *testing.T) *box {
	t.Helper()

	var b *box

	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()

		b = d.boxes[d.Name(attemptID)]

		return b != nil
	}, 10*time.Second, time.Millisecond)

	return b
}

// books are the records of one attempt.
type books struct {
	mu       sync.Mutex
	assignee berth.Assignee
	running  []string // containers
	results  []berth.Result
	metrics  map[string]berth.MetricPoint // by name and step
	log      map[int64]berth.LogPiece     // by offset

	runningErr error
	finishErrs []error // of the next calls
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

func (b *books) Assignee(context.Context, string) (berth.Assignee, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	who := b.assignee
	for _, p := range b.log { // what the database's LogEnd says
		if p.Stream != "berth" {
			who.LogOffset = max(who.LogOffset, p.Offset+int64(len(p.Data)))
		}
	}

	return who, nil
}

func (b *books) AttemptRunning(_ context.Context, _ string, _ int64, containerID string, startedAt time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.runningErr != nil {
		return b.runningErr
	}

	b.running = append(b.running, containerID)
	b.assignee.Attempt.State, b.assignee.Attempt.ContainerID = berth.AttemptRunning, containerID
	b.assignee.Attempt.StartedAt = &startedAt

	return nil
}

func (b *books) FinishAttempt(_ context.Context, r berth.Result) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if err := next(&b.finishErrs); err != nil {
		return err
	}

	b.results = append(b.results, r)
	a := &b.assignee.Attempt
	a.State, a.Kind, a.Message, a.Value, a.ExitCode = berth.AttemptFinished, r.Outcome.Kind, r.Outcome.Message, r.Outcome.Value, r.Outcome.ExitCode
	a.FinishedAt = &r.Outcome.FinishedAt

	return nil
}

func (b *books) PutMetrics(_ context.Context, _ string, _ int64, points []berth.MetricPoint) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if err := next(&b.metricErrs); err != nil {
		return err
	}

	for _, p := range points {
		b.metrics[p.Name+"/"+strings.Repeat("i", int(p.Step))] = p
	}

	return nil
}

func (b *books) PutLog(_ context.Context, _ string, _ int64, piece berth.LogPiece) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if err := next(&b.logErrs); err != nil {
		return err
	}

	if _, there := b.log[piece.Offset]; !there {
		piece.Data = slices.Clone(piece.Data)
		b.log[piece.Offset] = piece
	}

	return nil
}

// text is the whole stored log; pieces must follow each other without a gap.
func (b *books) text(t *testing.T) string {
	t.Helper()

	b.mu.Lock()
	defer b.mu.Unlock()

	pieces := make([]berth.LogPiece, 0, len(b.log))
	for _, p := range b.log {
		pieces = append(pieces, p)
	}

	slices.SortFunc(pieces, func(a, b berth.LogPiece) int { return cmp.Compare(a.Offset, b.Offset) })

	var text strings.Builder

	for _, p := range pieces {
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

	r := &rig{docks: newDocks(), dir: t.TempDir(), books: &books{
		metrics: map[string]berth.MetricPoint{}, log: map[int64]berth.LogPiece{},
		assignee: berth.Assignee{
			LeaseID: "lease", SweepID: "sweep", ImageDigest: "sha256:x",
			Attempt: berth.Attempt{
				ID: attemptID, TrialID: "trial", Number: 1, Stage: berth.StageMain, State: berth.AttemptPlaced, Token: token,
				Demand: berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 500},
			},
			Trial: berth.Trial{
				ID: "trial", SweepID: "sweep", Number: 3, ShapeKey: "shape",
				Params: berth.Assignment{"lr": berth.FloatValue(0.1), "units": berth.IntValue(8)},
			},
			Spec: berth.Spec{
				Command:   []string{"python", "train.py", "--lr={{lr}}"},
				Metrics:   berth.MetricsSpec{Source: berth.MetricsStdout},
				Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyLast},
			},
		},
	}}

	open := func(berth.Container) (Meter, error) {
		return gauge{berth.MemorySample{WorkingSetBytes: 300 << 20, CPU: time.Second}}, nil
	}
	config := Config{
		DataDir: r.dir, SampleEvery: time.Millisecond, BootID: "boot", Bounds: Bounds{LogLimit: 1 << 20},
		CPUIdle: func() (int64, int64, error) { n := time.Now().UnixNano(); return n / 2, n, nil },
	}
	r.Executor = New(r.docks, r.books, open, config, slog.New(slog.DiscardHandler))

	return r
}

var errStop = berth.Errorf(berth.KindCanceled, "stop it")

func (r *rig) order() Order { return Order{AttemptID: attemptID, Token: token, StopCause: errStop} }

// answer is what a Run came to.
type answer struct {
	outcome berth.Outcome
	err     error
}

// start runs the order until its end, which await waits for.
func (r *rig) start(ctx context.Context, order Order) <-chan answer {
	ended := make(chan answer, 1)

	go func() {
		outcome, err := r.Run(ctx, order)
		ended <- answer{outcome, err}
	}()

	return ended
}

func await(t *testing.T, ended <-chan answer) answer {
	t.Helper()

	select {
	case a := <-ended:
		return a
	case <-time.After(time.Minute): // seconds under the race detector on a busy machine
		require.Fail(t, "the attempt does not end")

		return answer{}
	}
}
