package fault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/testkit/fake"
	"github.com/berthml/berth/internal/testkit/fault"
)

const (
	gib   = 1 << 30
	image = "sha256:x"
	host  = "host"
	// firstPeak is the peak of every container in its first two seconds, and
	// laterPeak after that: a worker that forgets its measurement measures
	// less.
	firstPeak = 900 << 20
	laterPeak = 300 << 20
	// keptWithin is how long after a measurement it is safe from everything:
	// internal/agent/runtrial writes it down every five seconds.
	keptWithin = 6 * time.Second
)

// The causes with which a run's context ends.
var (
	errShutdown = errors.New("the worker stops")
	errCrash    = errors.New("the worker was killed")
	errGivenUp  = errors.New("not heard of for too long")
)

// world is a host, its database, a worker that sometimes dies, and the
// workflows of some trials.
type world struct {
	dir      string
	seed     uint64
	began    time.Time
	docker   *fake.Docker
	ledger   *fake.Ledger
	injector *fault.Injector
	every    time.Duration // between two rounds of the reconciler
	grace    time.Duration // of the reconciler: no invariant may hang on it

	mu       sync.Mutex
	rand     *rand.Rand
	boot     int
	worker   *worker
	dead     []*worker
	trials   []*trial
	timeline []string
	did      map[string]int // events, for the tally
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
	stageKey string // it runs a stage, whose output others share; empty = its own command
	mu       sync.Mutex
	current  string // attempt
	canceled chan struct{}
	lost     chan struct{} // the host is taken for lost: replaced for each attempt
	again    chan struct{} // Temporal gets no heartbeat and offers the activity again
	ended    string        // how
	told     map[string]berth.Outcome
	known    map[string]int64 // largest peak reported to Temporal, by attempt
	kept     map[string]int64 // and the peak that must be on disk, of the container
	// container is the newest of an attempt: one that was fenced, and whose
	// container was removed, gets another when it is given back.
	container map[string]string
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
	w.docker.Faults, w.ledger.Faults = w.injector.Faults(fault.Docker), w.injector.Faults(fault.Ledger)

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
		default: // no worker runs it
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
			told: map[string]berth.Outcome{}, known: map[string]int64{}, kept: map[string]int64{}, container: map[string]string{},
		}
		w.trials = append(w.trials, tr)

		limits := berth.Limits{}
		if w.draw(4) == 0 {
			limits.MaxTrialDuration = berth.Duration(w.seconds(5, 40))
		}

		if w.draw(3) == 0 {
			tr.stageKey = "key-" + tr.id
		}

		w.ledger.AddTrial(fake.Trial{
			StageKey: tr.stageKey, ImageDigest: image, Trial: berth.Trial{ID: tr.id, Number: i + 1, ShapeKey: "shape"},
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

// bury ends the rest of the world, so that its goroutines end.
func (w *world) bury(stuck bool) {
	for _, tr := range w.trials {
		if stuck && !isClosed(tr.canceled) {
			close(tr.canceled)
		}
	}

	w.mu.Lock()
	all := append(slices.Clone(w.dead), w.worker)
	w.mu.Unlock()

	if stuck { // its goroutines cannot be ended: fix the bug that the timeline shows
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
