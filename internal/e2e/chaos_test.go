//go:build integration && nightly

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

const (
	// chaosLasts is how long faults come unless CHAOS_DURATION says otherwise.
	chaosLasts = time.Minute
	// chaosQuiet is how long everything may take to end once the faults are over. After
	// a minute of faults (seed 7, two cores) it took 30 s; a busy machine has ten times that.
	chaosQuiet = 5 * time.Minute
	// chaosLook is how often the invariants are checked.
	chaosLook = 500 * time.Millisecond
	// continueEarly makes sweeps of a few trials continue as new: each trial costs
	// its sweep some ten events, and Berth continues at 2,000 by default.
	continueEarly = "limit.historyCount.suggestContinueAsNew=60"
)

// TestChaos runs random sweeps under random faults, ends the faults, lets every sweep
// end, and looks at the invariants (I1 to I7) all along.
//
// CHAOS_SEED repeats the order of events, and CHAOS_DURATION, such as 30m, makes the
// run long. The test prints both.
func TestChaos(t *testing.T) { //nolint:paralleltest // it wants the machine to itself
	seed, lasts := rand.Uint64(), chaosLasts

	var err error
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CHAOS_SEED must be a whole number")
	}

	if text := os.Getenv("CHAOS_DURATION"); text != "" {
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "CHAOS_DURATION must be a time such as 90s or 30m")
	}

	t.Logf("repeat with CHAOS_SEED=%d CHAOS_DURATION=%s", seed, lasts)

	x := &chaos{
		cluster: startParts(t, func(c *cluster) { c.dynamic = []string{continueEarly} }),
		random:  rand.New(rand.NewPCG(seed, seed)), began: time.Now(), daemons: map[string]*dockerProxy{},
		injected: map[string]int{}, removed: map[string]bool{}, seen: map[string]string{},
	}
	defer x.report()

	x.startAll()

	ctx, endWatch := context.WithCancel(t.Context())
	watched := make(chan struct{})

	go func() {
		defer close(watched)

		for ; ctx.Err() == nil; pause(ctx, chaosLook) {
			x.look(ctx)
		}
	}()

	x.storm(lasts)
	x.calm()
	endWatch()
	<-watched

	require.Empty(t, x.broken, "CHAOS_SEED=%d CHAOS_DURATION=%s", seed, lasts)
	require.Positive(t, x.looks, "the invariants were never looked at")
	require.NotEmpty(t, x.sweeps, "no sweep was accepted")
}

// chaos is one run.
type chaos struct {
	*cluster

	random       *rand.Rand
	began        time.Time
	second       *exec.Cmd               // the other server
	daemons      map[string]*dockerProxy // of hosts, by name
	due          []repair
	drawn        int      // sweep files
	sweeps       []string // ids of accepted sweeps
	temporalDown bool

	mu       sync.Mutex
	timeline []string
	deleted  []string // ids of sweeps that a person deleted, or tried to
	injected map[string]int
	removed  map[string]bool   // containers that a fault removed, by name
	seen     map[string]string // container ids by name
	results  map[string]string // results at the last look
	counters map[string]int64  // at the last look
	broken   []string
	looks    int
}

// repair ends a fault.
type repair struct {
	at   time.Time
	what string
	do   func()
}

func pause(ctx context.Context, lasts time.Duration) {
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
}

// storm plays random events. What breaks an invariant ends it: more events would
// only hide the cause.
func (x *chaos) storm(lasts time.Duration) {
	for end := time.Now().Add(lasts); time.Now().Before(end) && !x.isBroken(); {
		e := x.draw()

		for at := time.Now().Add(e.gap); time.Now().Before(at); pause(x.t.Context(), tick) {
			x.mend(false)
		}

		e.kind.do(x, e)
	}
}

// mend ends due faults, or all.
func (x *chaos) mend(all bool) {
	var later []repair

	due := x.due
	x.due = nil

	for _, r := range due {
		if !all && time.Now().Before(r.at) {
			later = append(later, r)

			continue
		}

		x.note("%s", r.what)
		r.do()
	}

	x.due = append(later, x.due...)
}

// calm ends all faults and waits until everything has ended and nothing is left.
func (x *chaos) calm() {
	x.mend(true)
	x.note("calm")
	pgtest.Exec(x.t, x.postgres.URL, "UPDATE hosts SET test_at = now() WHERE cordoned_at IS NOT NULL")

	var left []string

	for deadline := time.Now().Add(chaosQuiet); time.Now().Before(deadline) && !x.isBroken(); pause(x.t.Context(), time.Second) {
		x.resumePaused()

		if left = x.left(); len(left) == 0 {
			return
		}
	}

	for _, text := range left {
		x.breaks("%s", text)
	}
}

// resumePaused resumes sweeps that a fault paused, or that paused themselves.
func (x *chaos) resumePaused() {
	answer, err := x.api.ListSweepsWithResponse(x.t.Context(), &client.ListSweepsParams{State: &[]client.SweepState{client.SweepStatePaused}})
	if err != nil || answer.JSON200 == nil {
		return
	}

	for _, s := range answer.JSON200.Data {
		x.ask(s.ID, "resume")
	}
}

// left lists the leftovers after everything has ended (I4, I5), and lost
// accepted sweeps (I7).
func (x *chaos) left() []string {
	inspector, err := pgtest.Inspect(x.t.Context(), x.postgres.URL)
	if err != nil {
		return []string{err.Error()}
	}
	defer inspector.Close(context.WithoutCancel(x.t.Context()))

	left, err := inspector.Broken(x.t.Context(), true)
	if err != nil {
		return []string{err.Error()}
	}

	sweeps, err := inspector.Sweeps(x.t.Context())
	if err != nil {
		return []string{err.Error()}
	}

	for _, id := range x.sweeps {
		if !slices.Contains(sweeps, id) && !slices.Contains(x.deleted, id) {
			left = append(left, "I7 a sweep that was accepted is there: "+id)
		}
	}

	for _, c := range x.containers() {
		left = append(left, "I5 no container is left: "+c.name+" is "+c.state)
	}

	// No host was silent for so long that an output was lost, and none was damaged. A person may have removed some.
	if found := pgtest.Connect(x.t, x.postgres.URL).Text(`SELECT coalesce(string_agg(what, '; '), '') FROM (
		SELECT 'a trial read another text than its stage wrote: attempt ' || id AS what FROM attempts WHERE exit_code = 9
		UNION ALL SELECT 'stage ' || e.stage || ' ended well ' || count(*) || ' times for one key' FROM (
			SELECT t.stage_keys[p.position] AS key, a.stage FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id AND s.deleted_at IS NULL
				JOIN LATERAL json_array_elements(s.spec -> 'stages') WITH ORDINALITY AS p (stage, position) ON p.stage ->> 'name' = a.stage
			WHERE a.failure_kind = 'ok' AND a.outputs_removed_why NOT IN ('its stage was forgotten', 'the sweep was deleted') AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = a.id AND r.short)
		) e GROUP BY e.key, e.stage HAVING count(*) > 1) w`); found != "" {
		left = append(left, found)
	}

	return append(left, x.openWorkflows()...)
}

// openWorkflows returns the open workflows, without the holder of the
// installation's id, which never ends.
func (x *chaos) openWorkflows() (texts []string) {
	connected, err := dialTemporal(x.t.Context(), x.temporal.Address)
	if err != nil {
		return []string{err.Error()}
	}
	defer connected.Close()

	open, err := connected.ListWorkflow(x.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "ExecutionStatus = 'Running' AND WorkflowType != 'berth-installation'",
	})
	if err != nil {
		return []string{err.Error()}
	}

	for _, w := range open.GetExecutions() {
		texts = append(texts, "I5 no workflow is left: "+w.GetExecution().GetWorkflowId())
	}

	return texts
}

// look checks the invariants of every moment.
func (x *chaos) look(ctx context.Context) {
	running := x.runningAttempts()

	inspector, err := pgtest.Inspect(ctx, x.postgres.URL)
	if err != nil {
		return // the database is down
	}
	defer inspector.Close(context.WithoutCancel(ctx))

	broken, err := inspector.Broken(ctx, false)
	if err != nil {
		return
	}

	unleased, err := inspector.Unleased(ctx, running)
	if err != nil {
		return
	}

	results, err := inspector.Results(ctx)
	if err != nil {
		return
	}

	counters, err := inspector.Counters(ctx)
	if err != nil {
		return
	}

	for _, text := range broken {
		x.breaks("%s", text)
	}

	for _, attempt := range unleased { // released since the list was made, unless it runs still
		if x.runs("berth-" + x.instance + "-" + attempt) {
			x.breaks("I2: the container of attempt %s runs without a lease", attempt)
		}
	}

	x.compare(results, counters)
}

// compare notes forbidden changes since the last call (I3, I6), and keeps its
// input for the next.
func (x *chaos) compare(results map[string]string, counters map[string]int64) {
	x.mu.Lock()
	deleted := slices.Clone(x.deleted)
	x.mu.Unlock()

	isDeleted := func(name string) bool {
		return slices.ContainsFunc(deleted, func(id string) bool { return strings.Contains(name, id) })
	}

	for name, before := range x.results {
		if now, ok := results[name]; now != before && (ok || !isDeleted(name)) {
			x.breaks("I3: the end of %s changed from %q to %q", name, before, now)
		}
	}

	for name, n := range counters {
		if n < x.counters[name] && (len(deleted) == 0 || name == "events") {
			x.breaks("I6: %s went back from %d to %d", name, x.counters[name], n)
		}
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	x.results, x.counters = results, counters
	x.looks++
}

// runningAttempts are the attempts whose containers run, each with one container for
// ever (R1).
func (x *chaos) runningAttempts() (attempts []string) {
	for _, c := range x.running() {
		attempts = append(attempts, strings.TrimPrefix(c.name, "berth-"+x.instance+"-"))

		x.mu.Lock()
		second := x.seen[c.name] != "" && x.seen[c.name] != c.id && !x.removed[c.name]
		x.seen[c.name] = c.id
		x.mu.Unlock()

		if second {
			x.breaks("R1: %s had two containers", c.name)
		}
	}

	return attempts
}

// runs asks for a container's own state: the list calls it running until Docker has
// written down that it exited.
func (x *chaos) runs(name string) bool {
	out, err := x.docker("inspect", "--format", "{{.State.Running}}", name).Output()

	return err == nil && strings.TrimSpace(string(out)) == "true"
}

// note writes a line of the timeline.
func (x *chaos) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()

	x.timeline = append(x.timeline, fmt.Sprintf("%7.2f s  ", time.Since(x.began).Seconds())+fmt.Sprintf(format, args...))
}

// breaks notes a broken invariant, once.
func (x *chaos) breaks(format string, args ...any) {
	text := fmt.Sprintf(format, args...)

	x.mu.Lock()
	known := slices.Contains(x.broken, text)

	if !known {
		x.broken = append(x.broken, text)
	}
	x.mu.Unlock()

	if !known {
		x.note("BROKEN %s", text)
	}
}

func (x *chaos) isBroken() bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	return len(x.broken) > 0
}

// report prints the figures, and after a failure the timeline.
func (x *chaos) report() {
	x.mu.Lock()
	defer x.mu.Unlock()

	var events []string
	for _, kind := range slices.Sorted(maps.Keys(x.injected)) {
		events = append(events, fmt.Sprintf("%d %s", x.injected[kind], kind))
	}

	x.t.Logf("%s: %d sweeps, %d containers, %d results, invariants looked at %d times; events: %s",
		time.Since(x.began).Round(time.Second), len(x.sweeps), len(x.seen), len(x.results), x.looks, strings.Join(events, ", "))

	if x.t.Failed() || len(x.broken) > 0 {
		x.t.Logf("what happened when:\n%s", strings.Join(x.timeline, "\n"))
	}
}
