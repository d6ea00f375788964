package fault_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/testseed"
)

var (
	seeds = flag.Int("seeds", 500, "how many worlds TestLostReplies plays")
	first = flag.Uint64("seed", 0, "the first of their seeds; 0 = that of testseed")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLostReplies plays worlds in which workers are killed, replies are lost,
// machines restart and hosts are taken for lost, and checks the invariants I1
// to I7: at every step, and at the end. A failure prints the seed, with which
// -seed plays the same world again, and the world's history.
func TestLostReplies(t *testing.T) {
	t.Parallel()

	const players = 4 // twice the cores: some wait for the disk

	from := *first
	if from == 0 {
		from = testseed.Seed(t)
	}

	many := *seeds
	if testing.Short() {
		many = min(many, 100)
	}

	t.Logf("%d worlds from seed %d", many, from)

	base := "" // in memory if there is such a place: the files are synced
	if _, err := os.Stat("/dev/shm"); err == nil {
		base = "/dev/shm"
	}

	var (
		next  atomic.Uint64
		wrong atomic.Bool // one world is enough
	)

	did := &tally{counts: make(map[string]int)}

	t.Cleanup(func() { did.report(t, many) }) // after the players

	for player := range players {
		t.Run(fmt.Sprint("player ", player), func(t *testing.T) {
			t.Parallel()

			for !wrong.Load() {
				n := next.Add(1) - 1
				if n >= uint64(many) { //nolint:gosec // G115: a count
					return
				}

				playOne(t, from+n, base, did)
				wrong.CompareAndSwap(false, t.Failed())
			}
		})
	}
}

// tally counts the events of all worlds, so that a quiet world does not pass
// for a sound one.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for method, kinds := range w.injector.Injected() {
		for kind, n := range kinds {
			c.counts["fault "+string(kind)] += n
			c.counts["fault in "+method] += n
		}
	}

	for _, a := range w.ledger.Snapshot().Attempts {
		c.counts["attempt "+string(a.State)+" "+string(a.Kind)]++
	}

	for what, n := range w.did {
		c.counts[what] += n
	}
}

func (c *tally) report(t *testing.T, many int) {
	t.Helper()

	c.mu.Lock()
	defer c.mu.Unlock()

	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		t.Logf("%7d %s", c.counts[what], what)
	}

	if many < 2000 || t.Failed() {
		return // too few to have seen everything
	}

	for _, what := range []string{
		"fault before", "fault after", "fault half", "fault hang", "fault slow",
		"fault in Ensure", "fault in Wait", "fault in Logs", "fault in Stop", "fault in Remove", "fault in List",
		"fault in Assignee", "fault in AttemptRunning", "fault in FinishAttempt", "fault in PutMetrics", "fault in PutLog",
		"fault in HostLeases", "fault in ReleaseLease", "fault in TouchHost", "fault in Place", "fault in AbandonAttempt",
		"attempt finished ok", "attempt finished user_error", "attempt finished canceled", "attempt finished timed_out",
		"attempt finished infra", "attempt finished killed", "attempt abandoned infra",
		"killed", "stopped", "restarted", "away", "pruned", "canceled", "lost", "offered again", "revived", "verdict committed later", "shared",
	} {
		require.Positive(t, c.counts[what], "%q never happened", what)
	}
}

func playOne(t *testing.T, seed uint64, base string, did *tally) {
	t.Helper()

	var w *world

	defer func() {
		if stuck := recover(); stuck != nil { // synctest's word that nothing can happen any more
			t.Log(w.report())
			panic(stuck)
		}
	}()

	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, base)
		w.play(t)
		did.add(w)

		if len(w.wrong) > 0 {
			t.Error(w.report())
		}
	})
}

// check looks at the invariants that hold at every step. A container that runs
// before and after the ledger was read ran when it was read.
func (w *world) check() {
	if w.docker == nil || w.ledger == nil {
		return // not made yet
	}

	before := map[string]bool{}
	for _, c := range w.docker.Live() {
		before[c.ID] = true
	}

	s := w.ledger.Snapshot()
	holds := map[string]bool{}
	memory, attempts := int64(0), 0

	for _, l := range s.Leases {
		if l.State != berth.LeaseReleased {
			holds[l.AttemptID] = true
			memory += l.Demand.MemoryBytes
			attempts++
		}
	}

	for _, c := range w.docker.Live() {
		if before[c.ID] && !holds[c.AttemptID] {
			w.fail("I2: the container of %s runs and holds no place", c.AttemptID)
		}
	}

	for _, h := range s.Hosts {
		if h.MemoryReservedBytes != memory || h.Attempts != attempts || memory > h.MemoryBytes-h.MemoryHeadroomBytes {
			w.fail("I2: %d bytes are leased, %d reserved of %d", memory, h.MemoryReservedBytes, h.MemoryBytes-h.MemoryHeadroomBytes)
		}
	}

	live := map[string]string{}

	for _, a := range s.Attempts {
		if a.State == berth.AttemptPlaced || a.State == berth.AttemptRunning {
			if other := live[a.TrialID]; other != "" {
				w.fail("I1: %s and %s are both live", a.ID, other)
			}

			live[a.TrialID] = a.ID
		}
	}

	w.compare(s.Attempts)
}

// order is how far an attempt is. One that was abandoned may be revived.
var order = map[berth.AttemptState]int{berth.AttemptPlaced: 1, berth.AttemptRunning: 2, berth.AttemptAbandoned: 3, berth.AttemptFinished: 4}

// compare checks attempts against their earlier results. Observers may overtake
// each other, so it compares only attempts with a result.
func (w *world) compare(attempts []berth.Attempt) {
	w.mu.Lock()
	seen := make([]berth.Attempt, 0, len(attempts))

	for _, a := range attempts {
		if before, there := w.seen[a.ID]; !there || order[a.State] > order[before.State] {
			w.seen[a.ID] = a
		}

		seen = append(seen, w.seen[a.ID])
	}
	w.mu.Unlock()

	for i, a := range attempts {
		if b := seen[i]; a.State == berth.AttemptFinished && (a.State != b.State || a.Kind != b.Kind || a.Token != b.Token) {
			w.fail("I3: %s ended as %s %s, and as %s %s", a.ID, b.State, b.Kind, a.State, a.Kind)
		}
	}
}

// atRest looks at the invariants that hold when everything is over.
func (w *world) atRest() {
	s := w.ledger.Snapshot()

	for _, a := range s.Attempts {
		if a.State != berth.AttemptFinished && a.State != berth.AttemptAbandoned {
			w.fail("I4: %s is %s for ever", a.ID, a.State)
		}

		w.checkResult(a)
	}

	for _, l := range s.Leases {
		if l.State != berth.LeaseReleased {
			w.fail("I5: the lease of %s is %s", l.AttemptID, l.State)
		}
	}

	for _, h := range s.Hosts {
		if h.MemoryReservedBytes != 0 || h.Attempts != 0 {
			w.fail("I5: %d bytes stay reserved", h.MemoryReservedBytes)
		}
	}

	left, err := w.docker.List(w.worker.ctx)
	if err != nil {
		w.fail("listing containers: %v", err)
	}

	for _, c := range left {
		w.fail("I5: the container of %s is left, %s", c.AttemptID, c.State)
	}

	files, err := w.worker.executor.Leftovers()
	if err != nil {
		w.fail("looking for files: %v", err)
	}

	for _, id := range files {
		w.fail("I5: files of %s are left", id)
	}
}

// checkResult checks the database's record of an ended attempt.
func (w *world) checkResult(a berth.Attempt) {
	result, finished := w.ledger.Result(a.ID)
	if finished != (a.State == berth.AttemptFinished) || finished && result.Token != a.Token {
		w.fail("I3: %s is %s with token %d; it has a result: %t, with token %d", a.ID, a.State, a.Token, finished, result.Token)
	}

	for _, tr := range w.trials {
		if tr.id == a.TrialID && tr.stageKey != "" {
			w.checkOutput(a, result, tr.stageKey)
		}

		if told, said := tr.told[a.ID]; said && (!finished || !same(told, result.Outcome)) {
			w.fail("I7: the workflow of %s was told %s %q, and the database has %s %q", a.ID, told.Kind, told.Message, result.Outcome.Kind, result.Outcome.Message)
		}

		if peak := tr.kept[a.ID]; finished && result.Outcome.Usage.MemoryPeakBytes < peak {
			w.fail("I6: %s says it measured %d at most, and had measured %d", a.ID, result.Outcome.Usage.MemoryPeakBytes, peak)
		}
	}

	if !finished || result.Outcome.Kind != berth.FailureOK && result.Outcome.Kind != berth.FailureUserError {
		return
	}

	// It ended by itself: all its output must be stored.
	script := w.script(a.ID)

	pieces, err := w.ledger.ReadLog(w.worker.ctx, a.ID, 0, 1000)
	if err != nil {
		w.fail("reading log: %v", err)
	}

	text := ""
	for _, p := range pieces {
		if p.Offset != int64(len(text)) {
			w.fail("I7: the log of %s has a gap at %d", a.ID, len(text))
		}

		text += string(p.Data)
	}

	if text != script.output() {
		w.fail("I7: the log of %s is %q, and it said %q", a.ID, text, script.output())
	}

	points, err := w.ledger.ListMetrics(w.worker.ctx, a.ID, "acc", 1000)
	if err != nil || len(points) != script.lines {
		w.fail("I7: %s reported %d values, and %d are there: %v", a.ID, script.lines, len(points), err)
	}

	if v := result.Outcome.Value; result.Outcome.Kind == berth.FailureOK && (v == nil || *v != float64(script.lines)) {
		w.fail("I7: %s ended with another value than it reported last", a.ID)
	}
}

// checkOutput checks that the output of a stage is shared if its attempt ended well and not otherwise,
// and that it is whole then.
func (w *world) checkOutput(a berth.Attempt, result berth.Result, key string) {
	if result.Outcome.Kind != berth.FailureOK {
		if result.StageKey != "" {
			w.fail("I3: %s ended as %s, and its output is shared", a.ID, result.Outcome.Kind)
		}

		return
	}

	w.count("shared")

	manifest, err := os.ReadFile(filepath.Join(filepath.Dir(w.output(a.ID)), "..", "stage.json"))
	content, missing := os.ReadFile(w.output(a.ID))

	want := strings.ReplaceAll(fmt.Sprintf(`[{"path":"base","bytes":5,"sha256":%v}]`, sha256.Sum256([]byte("whole"))), " ", ",")

	if err != nil || missing != nil || result.StageKey != key || string(content) != "whole" || string(manifest) != want {
		w.fail("I3: %s shares %q as %q with the manifest %s: %v, %v", a.ID, content, result.StageKey, manifest, err, missing)
	}
}

func TestInjector_SameSeedSameFaults(t *testing.T) {
	t.Parallel()

	once, again := faults(1), faults(1)
	require.NotEmpty(t, once)
	require.Equal(t, once, again)
	require.NotEqual(t, once, faults(2))
}
