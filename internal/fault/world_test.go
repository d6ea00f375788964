package fault_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/fake"
	"github.com/berthml/berth/internal/fault"
	"github.com/berthml/berth/internal/reconcile"
	"github.com/berthml/berth/internal/runtrial"
)

const (
	gib   = 1 << 30
	image = "sha256:x"
	host  = "host"
	// firstPeak is what every container takes in its first two seconds, and
	// laterPeak after that: who forgets what was measured measures less.
	firstPeak = 900 << 20
	laterPeak = 300 << 20
	// keptWithin is how long after a measurement it is safe from everything:
	// internal/runtrial writes it down every five seconds.
	keptWithin = 6 * time.Second
)

// The causes with which a run's context ends.
var (
	errStop     = errors.New("the trial was canceled")
	errShutdown = errors.New("the worker stops")
	errCrash    = errors.New("the worker was killed")
	errGivenUp  = errors.New("not heard of for too long")
)

// world is a host, its database, a worker that dies now and then, and the
// workflows of some trials.
type world struct {
	dir      string
	seed     uint64
	began    time.Time
	docker   *fake.Docker
	ledger   *fake.Ledger
	injector *fault.Injector
	server   *fault.Records // as the workflows use it; never dies
	every    time.Duration  // between two rounds of the reconciler
	grace    time.Duration  // of the reconciler: no invariant may hang on it

	mu       sync.Mutex
	rand     *rand.Rand
	boot     int
	worker   *worker
	dead     []*worker
	trials   []*trial
	timeline []string
	did      map[string]int // what happened, for the tally
	wrong    []string
	seen     map[string]berth.Attempt // as of the last check
	group    sync.WaitGroup           // everything but workers
}

// worker is one process.
type worker struct {
	*fault.Life

	executor *runtrial.Executor
	ctx      context.Context //nolint:containedctx // its end is the process'
	end      context.CancelCauseFunc
	group    sync.WaitGroup
}

// trial is a trial's workflow.
type trial struct {
	id       string
	mu       sync.Mutex
	current  string // attempt
	canceled chan struct{}
	lost     chan struct{} // the host is taken for lost: replaced for each attempt
	again    chan struct{} // Temporal hears nothing and offers the activity again
	ended    string        // how
	told     map[string]berth.Outcome
	known    map[string]int64 // largest peak that Temporal was told, by attempt
	kept     map[string]int64 // and the one that must be on disk
}

func newWorld(t *testing.T, seed uint64, base string) *world {
	t.Helper()

	dir, err := os.MkdirTemp(base, "lost-replies-") //nolint:usetesting // it may be in memory, and ten thousand must not gather
	if err != nil {
		t.Fatal(err)
	}

	w := &world{
		dir: dir, seed: seed, began: time.Now(), rand: rand.New(rand.NewPCG(seed, 0)), seen: map[string]berth.Attempt{},
		did: map[string]int{},
	}
	w.every, w.grace = w.seconds(1, 15), w.seconds(1, 60)
	most := []float64{0.02, 0.08, 0.2}[w.draw(3)]
	w.injector = fault.New(seed, fault.Odds{Before: most, After: most, Half: most / 4, Hang: most / 8, Slow: 0.15}, func(text string) { w.note("%s", text) })
	w.docker = fake.NewDocker("boot-0", image, w.program, w.check)
	w.ledger = fake.NewLedger(w.check)
	w.server = w.injector.Records(w.ledger, fault.NewLife())

	return w
}

// draw is a number below n, of the world's own source.
func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.rand.IntN(n)
}

func (w *world) seconds(least, most int) time.Duration {
	return time.Duration(least)*time.Second + time.Duration(w.draw((most-least)*1000+1))*time.Millisecond
}

// note writes a line of the timeline.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.timeline = append(w.timeline, fmt.Sprintf("%9.3fs  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// count notes that something happened.
func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.did[what]++
}

// fail notes an invariant that does not hold, once.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)

	w.mu.Lock()
	again := slices.Contains(w.wrong, text)
	w.mu.Unlock()

	if again {
		return
	}

	w.note("WRONG: %s", text)
	w.mu.Lock()
	w.wrong = append(w.wrong, text)
	w.mu.Unlock()
}

// script is what an attempt's program does.
type script struct {
	lines  int
	every  time.Duration
	code   int
	sturdy bool // takes no notice of SIGTERM
}

func (w *world) script(attemptID string) script {
	h := fnv.New64a()
	_, _ = h.Write([]byte(attemptID))
	r := rand.New(rand.NewPCG(w.seed, h.Sum64()))

	return script{
		lines: 1 + r.IntN(20), every: time.Duration(r.IntN(3000)) * time.Millisecond,
		code: []int{0, 0, 0, 0, 1, 137}[r.IntN(6)], sturdy: r.IntN(5) == 0,
	}
}

func (s script) output() string {
	var text strings.Builder

	for n := range s.lines {
		fmt.Fprintf(&text, "acc=%d\n", n+1)
	}

	return text.String()
}

// verdict reports whether an attempt's outcome waits to be committed.
func (w *world) verdict(attemptID string) bool {
	_, err := os.Stat(filepath.Join(w.dir, "attempts", attemptID, "verdict.json"))

	return err == nil
}

func (w *world) program(p *fake.Process) int {
	s := w.script(p.Launch.AttemptID)

	if w.verdict(p.Launch.AttemptID) {
		w.fail("I3: %s runs again, and its verdict was written down", p.Launch.AttemptID)
	}

	for n := range s.lines {
		if !p.Sleep(s.every) && !s.sturdy {
			return 143
		}

		select {
		case <-p.Killed():
			return 137
		default:
		}

		p.Print(berth.Stdout, fmt.Sprintf("acc=%d\n", n+1))
	}

	return s.code
}

// gauge measures a container.
type gauge struct {
	*worker

	w *world
	c berth.Container
}

func (g gauge) Read() (berth.MemorySample, error) {
	select {
	case <-g.Ended():
		return berth.MemorySample{}, errCrash
	default:
	}

	for _, c := range g.w.docker.Live() {
		if c.ID == g.c.ID {
			if time.Since(c.StartedAt) < 2*time.Second {
				return berth.MemorySample{WorkingSetBytes: firstPeak, CPU: time.Second}, nil
			}

			return berth.MemorySample{WorkingSetBytes: laterPeak, CPU: time.Since(c.StartedAt)}, nil
		}
	}

	return berth.MemorySample{}, errors.New("gone")
}

func (w *world) machine() berth.Host {
	return berth.Host{
		ID: host, Name: host, BootID: fmt.Sprintf("boot-%d", w.boot), CPUMilli: 4000, MemoryBytes: 5 * gib, MemoryHeadroomBytes: gib,
		MemoryFreeBytes: 4 * gib,
	}
}

// begin starts a worker process.
func (w *world) begin() {
	w.note("a worker starts, boot %d", w.boot)

	p := &worker{Life: fault.NewLife()}
	p.ctx, p.end = context.WithCancelCause(context.Background())

	docker, ledger := w.injector.Containers(w.docker, p.Life), w.injector.Records(w.ledger, p.Life)
	log := slog.New(slog.DiscardHandler)

	p.executor = runtrial.New(docker, ledger,
		func(c berth.Container) (runtrial.Meter, error) { return gauge{p, w, c}, nil },
		runtrial.Config{DataDir: w.dir, Grace: 5 * time.Second, SampleEvery: time.Second, BootID: w.machine().BootID}, log)

	reconciler := reconcile.New(docker, ledger, reconcile.Config{
		Host: w.machine(), Attempts: p.executor, Free: func([]berth.Container) int64 { return gib },
		Every: w.every, Grace: w.grace,
	}, log)

	p.group.Go(func() {
		for reconciler.Register(p.ctx) != nil && p.ctx.Err() == nil {
			time.Sleep(time.Second)
		}

		_ = reconciler.Run(p.ctx) // ends with ctx
	})

	w.mu.Lock()
	w.worker = p
	w.mu.Unlock()
}

// stop ends the worker: killed, or told to stop.
func (w *world) stop(killed bool) {
	w.mu.Lock()
	p := w.worker
	w.worker = nil
	w.dead = append(w.dead, p)
	w.mu.Unlock()

	if killed {
		w.note("the worker is killed")
		w.count("killed")
		p.Kill()
		p.end(errCrash)

		return
	}

	w.note("the worker is told to stop")
	w.count("stopped")
	p.end(errShutdown)

	stopped := make(chan struct{})

	go func() {
		p.group.Wait()
		close(stopped)
	}()

	select {
	case <-stopped:
	case <-time.After(20 * time.Second): // WorkerStopTimeout
		w.note("it does not stop in time and is killed")
		p.Kill()
	}
}

// running is the worker that runs; it waits for one.
func (w *world) running() *worker {
	for {
		w.mu.Lock()
		p := w.worker
		w.mu.Unlock()

		if p != nil {
			return p
		}

		time.Sleep(500 * time.Millisecond)
	}
}

// reboot restarts the machine.
func (w *world) reboot() {
	w.note("the machine is restarted")
	w.count("restarted")
	w.stop(true)
	w.mu.Lock()
	w.boot++
	w.mu.Unlock()
	w.docker.Reboot(w.machine().BootID)
	time.Sleep(w.seconds(5, 60))
	w.begin()
}

// answer is what a run came to.
type answer struct {
	outcome berth.Outcome
	err     error
}

// run starts a run of an attempt in a worker.
func (w *world) run(p *worker, tr *trial, order runtrial.Order, stop, givenUp <-chan struct{}) <-chan answer {
	ended := make(chan answer, 1)
	ctx, end := context.WithCancelCause(p.ctx)

	tr.mu.Lock()
	known := tr.known[order.AttemptID]
	tr.mu.Unlock()

	if w.draw(2) == 0 {
		known = 0 // the heartbeats were lost
	}

	measured, since := int64(0), time.Now()

	order.Known.MemoryPeakBytes = known
	order.StopCause = errStop
	order.Beat = func(b runtrial.Beaten) {
		if b.Usage.MemoryPeakBytes < known {
			w.fail("I6: the measured peak of %s went back from %d to %d", order.AttemptID, known, b.Usage.MemoryPeakBytes)
		}

		select {
		case <-givenUp: // the server does not take it any more
		case <-p.Ended():
		default:
			tr.mu.Lock()
			defer tr.mu.Unlock()

			tr.known[order.AttemptID] = max(tr.known[order.AttemptID], b.Usage.MemoryPeakBytes)

			if b.Usage.MemoryPeakBytes > measured {
				measured, since = b.Usage.MemoryPeakBytes, time.Now()
			}

			if time.Since(since) > keptWithin {
				tr.kept[order.AttemptID] = max(tr.kept[order.AttemptID], measured)
			}
		}
	}

	p.group.Go(func() {
		outcome, err := p.executor.Run(ctx, order)
		end(nil)

		ended <- answer{outcome, err}
	})
	p.group.Go(func() {
		select {
		case <-stop:
			end(errStop)
		case <-givenUp: // it learns so by its next heartbeat
			time.Sleep(2 * time.Second)
			end(errGivenUp)
		case <-ctx.Done():
		}
	})

	return ended
}

// activity is Temporal's activity RunTrial: it is offered until it has an
// answer that stands. An error says that nobody asks again.
func (w *world) activity(tr *trial, order runtrial.Order, stop, lost <-chan struct{}) (berth.Outcome, error) {
	for {
		p := w.running()
		givenUp := make(chan struct{})
		what := order.AttemptID

		if order.Stop {
			what += " (stop)"
		}

		w.note("%s is handed to the worker", what)

		if w.verdict(order.AttemptID) {
			w.count("verdict committed later")
		}

		ended := w.run(p, tr, order, stop, givenUp)

		select {
		case a := <-ended:
			w.note("%s: %s %v", what, a.outcome.Kind, a.err)

			switch {
			case a.err == nil && w.draw(20) == 0:
				w.note("%s: the worker's answer is lost", what)

				tr.mu.Lock()
				tr.told[order.AttemptID] = a.outcome // it was said, to whoever
				tr.mu.Unlock()
			case a.err == nil, berth.KindOf(a.err) == berth.KindFenced:
				return a.outcome, a.err
			case isClosed(stop) && !order.Stop:
				return a.outcome, a.err // a canceled activity is not repeated
			}
		case <-p.Ended():
			w.note("%s: the worker is not heard of", what)
			time.Sleep(w.seconds(1, 60))
		case <-tr.again:
			w.note("%s: offered again", what)
			w.count("offered again")
			close(givenUp)

			continue
		case <-lost:
			w.count("lost")
			close(givenUp)

			return berth.Outcome{}, errGivenUp
		}

		if isClosed(lost) {
			return berth.Outcome{}, errGivenUp
		}

		time.Sleep(w.seconds(0, 3))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// insist repeats what must be done: a step of a workflow.
func insist(do func(ctx context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := do(ctx)

		cancel()

		if err == nil {
			return
		}

		time.Sleep(time.Second)
	}
}

// place asks for a place until there is one; false = canceled before.
func (w *world) place(tr *trial, attemptID string, number int) (token int64, placed bool) {
	request := berth.PlacementRequest{
		AttemptID: attemptID, TrialID: tr.id, Number: number, Stage: berth.StageMain, Purpose: berth.PurposeRun,
		Demand: berth.Demand{MemoryBytes: int64(1+w.draw(3)) * gib, CPUMilli: 1000},
	}

	for {
		var status berth.PlacementStatus

		insist(func(ctx context.Context) (err error) {
			status, err = w.server.RequestPlacement(ctx, request)

			return err
		})

		if status.State == berth.RequestPlaced {
			return status.Token, true
		}

		if isClosed(tr.canceled) {
			return 0, false
		}

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, _ = w.server.Place(ctx, map[string]berth.Placement{attemptID: {HostID: host}}) // refused or lost: the status says

		cancel()
		time.Sleep(time.Second)
	}
}

// lead is the workflow of a trial.
func (w *world) lead(tr *trial) {
	const attempts = 6

	for number := 1; number <= attempts; number++ {
		id := fmt.Sprintf("%s-%d", tr.id, number)

		token, placed := w.place(tr, id, number)
		if !placed {
			tr.end("canceled while it waited")

			return
		}

		lost := make(chan struct{})

		tr.mu.Lock()
		tr.current, tr.lost = id, lost
		tr.mu.Unlock()

		if w.draw(6) == 0 { // it is lost while it starts
			soon := time.AfterFunc(w.seconds(0, 8), func() { tr.lose(id) })
			defer soon.Stop()
		}

		order := runtrial.Order{AttemptID: id, Token: token}
		outcome, err := w.activity(tr, order, tr.canceled, lost)

		if err != nil && !errors.Is(err, errGivenUp) && berth.KindOf(err) != berth.KindFenced { // canceled: give the place back
			order.Stop = true
			outcome, err = w.activity(tr, order, nil, lost)
		}

		tr.mu.Lock()
		tr.current = ""
		tr.mu.Unlock()

		if err != nil {
			w.note("%s is abandoned", id)
			insist(func(ctx context.Context) error { return w.server.AbandonAttempt(ctx, id, "host lost") })

			if isClosed(tr.canceled) {
				tr.end("canceled")

				return
			}

			continue
		}

		w.heard(tr, id, outcome)

		if outcome.Kind.Policy().Next != berth.NextRetry {
			tr.end(string(outcome.Kind))

			return
		}
	}

	tr.end("too many attempts")
}

// heard checks an answer against what was said before, and keeps it.
func (w *world) heard(tr *trial, id string, outcome berth.Outcome) {
	tr.mu.Lock()
	before, said := tr.told[id]
	tr.told[id] = outcome
	tr.mu.Unlock()

	if said && !same(before, outcome) {
		w.fail("I3: %s was said to be %s, then %s", id, before.Kind, outcome.Kind)
	}
}

// lose takes the host of an attempt for lost, if the attempt is still the one.
func (tr *trial) lose(attemptID string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()

	if attemptID != "" && tr.current == attemptID && !isClosed(tr.lost) {
		close(tr.lost)
	}
}

func (tr *trial) end(how string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()

	tr.ended = how
}

// same reports whether two outcomes are the same result.
func same(a, b berth.Outcome) bool {
	value := func(v *float64) float64 {
		if v == nil {
			return -1
		}

		return *v
	}

	return a.Kind == b.Kind && a.Message == b.Message && value(a.Value) == value(b.Value) && a.Usage.MemoryPeakBytes == b.Usage.MemoryPeakBytes
}

// trouble does one thing to the world, and waits until it is over.
func (w *world) trouble() {
	pick := func() *trial { return w.trials[w.draw(len(w.trials))] }

	switch n := w.draw(13); n {
	case 0, 1, 2:
		w.stop(true)
		time.Sleep(w.seconds(0, 30))
		w.begin()
	case 3:
		w.stop(false)
		time.Sleep(w.seconds(0, 10))
		w.begin()
	case 4:
		w.reboot()
	case 5, 6:
		port := []fault.Port{fault.Docker, fault.Ledger}[n-5]
		w.note("%s goes away", port)
		w.count("away")
		w.injector.Away(port, true)
		time.Sleep(w.seconds(1, 90))
		w.injector.Away(port, false)
		w.note("%s is back", port)
	case 12:
		w.note("somebody removes all containers that have exited")
		w.count("pruned")
		w.docker.Prune()
	case 7:
		if tr := pick(); w.draw(2) == 0 && !isClosed(tr.canceled) {
			w.note("%s is canceled", tr.id)
			w.count("canceled")
			close(tr.canceled)
		}
	case 8, 9:
		tr := pick()
		tr.mu.Lock()
		id := tr.current
		tr.mu.Unlock()
		tr.lose(id)
	case 10, 11:
		select {
		case pick().again <- struct{}{}:
		default: // nobody runs it
		}
	}
}

// play is the life of the world.
func (w *world) play(t *testing.T) {
	t.Helper()

	w.begin()

	for i := range 1 + w.draw(4) {
		tr := &trial{
			id: fmt.Sprintf("t%d", i+1), canceled: make(chan struct{}), again: make(chan struct{}),
			told: map[string]berth.Outcome{}, known: map[string]int64{}, kept: map[string]int64{},
		}
		w.trials = append(w.trials, tr)

		limits := berth.Limits{}
		if w.draw(4) == 0 {
			limits.MaxTrialDuration = berth.Duration(w.seconds(5, 40))
		}

		w.ledger.AddTrial(fake.Trial{
			ImageDigest: image, Trial: berth.Trial{ID: tr.id, Number: i + 1, ShapeKey: "shape"},
			Spec: berth.Spec{
				Command: []string{"train"}, Metrics: berth.MetricsSpec{Source: berth.MetricsStdout}, Limits: limits,
				Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyLast},
			},
		})
	}

	for _, tr := range w.trials {
		w.group.Go(func() { w.lead(tr) })
	}

	for range 2 + w.draw(8) {
		time.Sleep(w.seconds(0, 12))
		w.trouble()
	}

	w.note("faults end")
	w.injector.Quiet()
	w.injector.Away(fault.Docker, false)
	w.injector.Away(fault.Ledger, false)

	if !w.settled(2 * time.Hour) {
		for _, tr := range w.trials {
			if tr.ended == "" {
				w.fail("I4: %s does not end", tr.id)
			}
		}

		w.bury(true)

		return
	}

	const stuck = 30 * time.Second // a round that hangs is cut off then

	time.Sleep(stuck + w.grace + 3*w.every) // the grace after a start, and two periods
	w.atRest()
	w.bury(false)
}

// settled waits for the workflows to end.
func (w *world) settled(atMost time.Duration) bool {
	done := make(chan struct{})

	go func() {
		w.group.Wait()
		close(done)
	}()

	select {
	case <-done:
		return true
	case <-time.After(atMost):
		return false
	}
}

// bury ends what is left of the world, so that its goroutines end.
func (w *world) bury(stuck bool) {
	for _, tr := range w.trials {
		if stuck && !isClosed(tr.canceled) {
			close(tr.canceled)
		}
	}

	w.mu.Lock()
	all := append(slices.Clone(w.dead), w.worker)
	w.mu.Unlock()

	if stuck { // its goroutines cannot be ended: who sees the timeline has to mend it
		return
	}

	for _, p := range all {
		p.end(errShutdown)
		p.Bury()
	}

	for _, p := range all {
		p.group.Wait()
	}

	w.docker.Close()

	_ = os.RemoveAll(w.dir)
}

// report is the timeline of a world in which something is wrong.
func (w *world) report() string {
	w.mu.Lock()
	defer w.mu.Unlock()

	var text strings.Builder

	fmt.Fprintf(&text, "seed %d: %s\n\n%s\n", w.seed, strings.Join(w.wrong, "\n         "), strings.Join(w.timeline, "\n"))

	for _, tr := range w.trials {
		fmt.Fprintf(&text, "%s ended: %q\n", tr.id, tr.ended)
	}

	for _, id := range slices.Sorted(maps.Keys(w.seen)) {
		fmt.Fprintf(&text, "%s: %s %s\n", id, w.seen[id].State, w.seen[id].Kind)
	}

	return text.String()
}
