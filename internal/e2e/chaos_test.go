//go:build integration

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

const (
	chaosDefault = 60 * time.Second
	// chaosQuiet is how long everything may take to end once the faults are over.
	chaosQuiet = 4 * time.Minute
	// chaosStuck without a change, nothing changes any more: longer than any
	// time after which a lost signal is made good.
	chaosStuck = 75 * time.Second
	// chaosHeals is how much longer it may take after a restore: of a trial whose
	// workflow has completed nothing is heard for a minute, and then 20 a round of
	// 10 s end as their workflows did.
	chaosHeals = 45 * time.Second
	// chaosStuckAgain is the same once a run has failed.
	chaosStuckAgain = 20 * time.Second
	// continueEarly has sweeps of a few trials continue as new: each trial costs
	// its sweep some ten events. Temporal suggests it at 4,096 by itself, and Berth
	// continues at 2,000.
	continueEarly = "limit.historyCount.suggestContinueAsNew=60"
	// chaosLook is how often the invariants are looked at while it lasts.
	chaosLook = 500 * time.Millisecond
	// canaryPatience is how long a canary may wait for its start while a host that
	// is known to be healthy has room, or it has a place on one, and everything
	// that placing needs is up. A signal that is lost costs it a minute.
	canaryPatience = 20 * time.Second
	// cancelPatience is how long the parts of a sweep that was canceled may not
	// know it, in which everything that carries the news is up: a workflow task
	// that a worker took with it is given to another after 10 s, and then the
	// sweep has to tell its trials.
	cancelPatience = 30 * time.Second
)

// firstSeed is the one of the first run of this process, and chaosRuns how many
// there were: each run has the next seed. By itself the first begins a deck.
var (
	firstSeed = rand.Uint64() / handsOfDeck * handsOfDeck
	chaosRuns uint64
)

// TestChaos runs random sweeps while random parts die, hang and lose sight of
// each other, and compares how every trial ends with how it must end (O1 to
// O5) and the ledger with its invariants (I1 to I7).
//
// CHAOS_SEED repeats a schedule, and -count goes on with the seeds that follow
// it; CHAOS_DURATION, such as 30m, makes it long.
// CHAOS_JOBS, CHAOS_SCENES and CHAOS_KINDS name what is drawn from, separated
// by commas ("none" = nothing of it); CHAOS_OTHER_BINARY is a berth that
// workers now and then run instead. A failure prints all of
// these and what happened when.
func TestChaos(t *testing.T) { //nolint:paralleltest // its schedule wants the machine to itself
	if text := os.Getenv("CHAOS_SEED"); text != "" && chaosRuns == 0 {
		var err error
		firstSeed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CHAOS_SEED must be a whole number")
	}

	seed := firstSeed + chaosRuns
	chaosRuns++

	lasts := chaosDefault
	if text := os.Getenv("CHAOS_DURATION"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "CHAOS_DURATION must be a time such as 90s or 30m")
	}

	plan := schedule(seed, lasts, plot{named("CHAOS_JOBS"), named("CHAOS_SCENES"), named("CHAOS_KINDS")})

	x := &chaos{
		cluster: startParts(t, func(c *cluster) { c.dynamic = []string{continueEarly} }), seed: seed, plan: plan,
		other: os.Getenv("CHAOS_OTHER_BINARY"), stuck: chaosStuck, docker: map[string]*dockerProxy{},
		began: time.Now(), injected: map[string]int{}, removed: map[string]bool{}, hit: map[string]bool{}, seen: map[string]string{},
		results: map[string]string{}, healthy: map[string]time.Time{}, waited: map[string]time.Duration{},
		awaited: map[string]int{}, blind: map[string]time.Time{}, limited: map[string]bool{}, again: repeats(seed, lasts),
	}

	defer x.report()

	for tool, kind := range sceneTools {
		_, err := exec.LookPath(tool)
		require.False(t, err != nil && slices.ContainsFunc(x.plan, func(e event) bool { return e.Kind == kind }),
			"scene %q needs %s (%s): install it, or name other scenes in CHAOS_SCENES", kind, tool, x.again)
	}

	x.startAll()

	ctx, endWatch := context.WithCancel(t.Context())
	watched := make(chan struct{})

	go func() {
		defer close(watched)
		x.watch(ctx)
	}()

	x.storm()

	if !x.emptied {
		x.calm()
	}

	endWatch()
	<-watched
	require.Empty(t, x.broken, "invariants were broken (%s)", x.again)
	require.Positive(t, x.looks, "the invariants were never looked at (%s)", x.again)
	require.NotEmpty(t, x.results, "nothing has ended (%s)", x.again)
	require.Positive(t, x.judgements, "no sweep was compared with what it must end as (%s)", x.again)
}

// sceneTools are what scenes need beside what all runs need.
var sceneTools = map[string]string{"pg_basebackup": restoredDatabase}

// repeats is what the environment must say for the same schedule.
func repeats(seed uint64, lasts time.Duration) string {
	text := fmt.Sprintf("CHAOS_SEED=%d CHAOS_DURATION=%s", seed, lasts)

	for _, variable := range []string{"CHAOS_JOBS", "CHAOS_SCENES", "CHAOS_KINDS", "CHAOS_OTHER_BINARY"} {
		if value := os.Getenv(variable); value != "" {
			text += fmt.Sprintf(" %s=%q", variable, value)
		}
	}

	return text
}

// named reads names from the environment; nil = all.
func named(variable string) []string {
	if text := os.Getenv(variable); text != "" {
		return strings.Split(text, ",")
	}

	return nil
}

// chaos is one run.
type chaos struct {
	*cluster

	seed    uint64
	plan    []event
	other   string // another berth, for workers; empty = none
	began   time.Time
	apis    []*client.ClientWithResponses
	second  *exec.Cmd // the other server
	docker  map[string]*dockerProxy
	due     []repair
	stuck   time.Duration // without a change, before nothing changes any more
	heals   time.Duration // how much longer than that a restored database may need
	idle    []event       // scenes that had no effect
	emptied bool          // Temporal came back without what it knew: nothing goes on by itself

	mu         sync.Mutex
	sweeps     []*ordered // of the schedule, by number
	extra      []*ordered // of canaries and scenes
	timeline   []string
	injected   map[string]int
	removed    map[string]bool   // containers that we removed, by name
	hit        map[string]bool   // attempts whose container a person killed or removed
	seen       map[string]string // container ids, by name
	results    map[string]string // what had ended, by name
	counters   map[string]int64  // what must not go back
	graced     time.Time         // until then, containers without a lease are no fault: the database is an older one
	forgotten  map[string]bool   // trials whose attempts the restored database may lack, by id
	lost       []string          // names of hosts that never return
	given      bool              // a person has removed them
	healthy    map[string]time.Time
	troubles   []trouble
	awaited    map[string]int           // hosts whose workers start: how often they say that they serve, then
	blind      map[string]time.Time     // hosts that do not see the database, since when
	held       time.Time                // until then, workflows may wait for one that did not
	waited     map[string]time.Duration // of canaries and cancellations, by sweep, while they need not have
	broken     []string
	bounded    map[string]bool // live attempts of sweeps with max_parallel, at the last look
	boundedAt  time.Time       // of that look, by the database's clock
	limited    map[string]bool // attempts whose limit was compared with their lease
	looks      int
	judgements int    // of sweeps that had ended
	again      string // what the environment must say for the same schedule
}

// ordered is a sweep of the storm, and what was done to it.
type ordered struct {
	order order
	key   string // of its submission
	id    string // empty until it was acknowledged
	acked client.Sweep
	deeds deeds
	// forgettable: acknowledged after the copy of the database that came back.
	forgettable bool
	refused     bool
	judged      bool // ended, and found right
}

func (o *ordered) String() string { return fmt.Sprintf("%.8s (%s)", o.id, o.order.Name) }

// repair ends a fault.
type repair struct {
	at   time.Time
	what string
	do   func()
}

// startAll runs both servers and the hosts, of unequal sizes.
func (x *chaos) startAll() {
	x.apis = []*client.ClientWithResponses{x.api}
	x.guard("server", x.server)
	x.startSecond()

	for n, flags := range [][]string{{"--memory", "1GiB"}, {"--memory", "768MiB"}, {"--memory", "512MiB", "--cpus", "1"}} {
		if cards := chaosCards[n]; cards > 0 {
			flags = append(flags, "--fake-gpus", fmt.Sprintf("%dx8GiB", cards))
		}

		h := x.addHost(flags...)
		x.docker[h.name] = x.proxyDocker(h)
		x.startWorker(h, binary)
	}

	x.awaitHosts()

	for _, part := range []string{"server", "second server", "PostgreSQL", "Temporal"} {
		x.recovered(part)
	}
}

// all are the sweeps that were acknowledged.
func (x *chaos) all() []*ordered {
	x.mu.Lock()
	defer x.mu.Unlock()

	var found []*ordered

	for _, o := range slices.Concat(x.sweeps, x.extra) {
		if o.id != "" {
			found = append(found, o)
		}
	}

	return found
}

// note writes a line of the timeline.
func (x *chaos) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()

	x.timeline = append(x.timeline, fmt.Sprintf("%7.2f s  ", time.Since(x.began).Seconds())+fmt.Sprintf(format, args...))
}

// fault notes and counts a fault, and plans its repair.
func (x *chaos) fault(kind, whom string, lasts time.Duration, mend func()) {
	x.note("%s %s for %s", kind, whom, lasts.Round(10*time.Millisecond))
	x.injected[kind]++

	if mend != nil {
		x.due = append(x.due, repair{time.Now().Add(lasts), kind + " of " + whom + " ends", mend})
	}
}

// storm plays the schedule. What takes long moves all that follows. The first
// sweep that is wronged ends it: what follows would only hide how.
func (x *chaos) storm() {
	began := time.Now()

	for _, e := range x.plan {
		if e.Kind == "canary" {
			x.judge()
		}

		if x.wronged() {
			return
		}

		for x.t.Context().Err() == nil && time.Since(began) < e.At {
			x.mend(false)
			pause(x.t.Context(), min(e.At-time.Since(began), 100*time.Millisecond))
		}

		x.act(e)

		if late := time.Since(began) - e.At; late > time.Second {
			began = began.Add(late)
		}
	}
}

func pause(ctx context.Context, lasts time.Duration) {
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
}

// until polls until the condition holds, or patience is over, and ends faults
// whose time has come meanwhile.
func (x *chaos) until(patience time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(patience); ; {
		if condition() {
			return true
		}

		if time.Now().After(deadline) || x.t.Context().Err() != nil {
			return false
		}

		x.mend(false)
		pause(x.t.Context(), 100*time.Millisecond)
	}
}

// mend ends the faults whose time has come, or all.
func (x *chaos) mend(all bool) {
	for i := 0; i < len(x.due); i++ {
		if !all && time.Now().Before(x.due[i].at) {
			continue
		}

		due := x.due[i]
		x.due = slices.Delete(x.due, i, i+1)
		i--

		x.note("%s", due.what)
		due.do()
	}
}

// act does what an event says.
func (x *chaos) act(e event) {
	switch {
	case e.Kind == submission:
		x.mu.Lock()
		o := &ordered{order: e.Order}
		x.sweeps = append(x.sweeps, o)
		x.mu.Unlock()
		x.submit(o)
	case e.Kind == "canary":
		x.submitExtra(e.Order)
	case slices.Contains(steering, e.Kind):
		x.steer(e)
	case slices.ContainsFunc(scenes, func(s scene) bool { return s.name == e.Kind }):
		x.play(e)
	default:
		x.inject(e)
	}
}

// submitExtra submits a sweep that no event of the schedule steers.
func (x *chaos) submitExtra(o order) *ordered {
	one := &ordered{order: o}

	x.mu.Lock()
	x.extra = append(x.extra, one)
	x.mu.Unlock()

	x.submit(one)

	return one
}

// submitTries bounds how often one submission is repeated, at one server and
// then at the other. A canary that is not accepted holds up the storm.
const (
	submitTries = 4
	canaryTries = 2
)

// submit posts a sweep until it is acknowledged: with one Idempotency-Key, so
// that a lost answer makes no second one.
func (x *chaos) submit(o *ordered) {
	if o.key == "" {
		o.key = fmt.Sprintf("%d %s", x.seed, o.order.Name)
	}

	tries := submitTries
	if o.order.Job == "canary" {
		tries = canaryTries
	}

	for try := range tries {
		ctx, cancel := context.WithTimeout(x.t.Context(), 3*time.Second)
		answer, err := x.apis[try%len(x.apis)].CreateSweepWithBodyWithResponse(ctx,
			&client.CreateSweepParams{IdempotencyKey: o.key}, "application/yaml", strings.NewReader(o.order.file()))

		cancel()

		if err == nil && x.take(o, answer) {
			return
		}
	}

	x.note("%s was not accepted", o.order.Name)
}

// take reads the answer to a submission; false = ask again.
func (x *chaos) take(o *ordered, answer *client.CreateSweepResponse) bool {
	switch code := answer.StatusCode(); {
	case code == http.StatusCreated:
		x.accepted(o, *answer.JSON201)
	case code == http.StatusOK:
		x.accepted(o, *answer.JSON200)
	case code == http.StatusServiceUnavailable, code == http.StatusTooManyRequests:
		return false
	case code >= http.StatusInternalServerError:
		x.breaks("O4: submitting %s was answered with %d: %s", o.order.Name, code, answer.Body)
		x.refused(o)
	case jobNamed(o.order.Job).refusable:
		x.note("%s was refused: %.160s", o.order.Name, answer.Body)
		x.refused(o)
	default:
		x.breaks("O1: %s was refused: %s", o.order.Name, answer.Body)
		x.refused(o)
	}

	return true
}

// refused notes the file, and that it need not be submitted again.
func (x *chaos) refused(o *ordered) {
	o.refused = true
	x.note("%q", o.order.file())
}

func (x *chaos) accepted(o *ordered, s client.Sweep) {
	x.mu.Lock()
	o.id, o.acked = s.ID, s
	x.mu.Unlock()
	x.note("sweep %s accepted: %+v", o, o.order)
}

// steer does to a sweep what a person may.
func (x *chaos) steer(e event) {
	if e.Sweep >= len(x.sweeps) || x.sweeps[e.Sweep].id == "" {
		return
	}

	o := x.sweeps[e.Sweep]
	x.injected[e.Kind]++

	switch e.Kind {
	case "terminate sweep":
		x.terminateSweep(o)
	case "terminate trial":
		x.terminateTrial(o, 1+int(e.Pick%uint64(max(o.order.planned(), 1)))) //nolint:gosec // G115: a few trials
	default:
		x.steerTo(o, e.Kind)
	}
}

// steerTo asks for pause, resume, stop or cancel, and notes that a person did:
// what was not answered may have happened nevertheless, what was refused not.
func (x *chaos) steerTo(o *ordered, what string) (acknowledged bool) {
	var (
		code int
		err  error
		done bool // perhaps
	)

	if what == "resume" {
		o.deeds.resuming(time.Now())
	}

	for _, api := range x.apis {
		code, err = x.ask(api, o.id, what)
		refused := err == nil && code >= http.StatusMultipleChoices && code < http.StatusInternalServerError
		done = done || !refused

		if err == nil && code < http.StatusInternalServerError {
			break
		}
	}

	acknowledged = err == nil && code < http.StatusMultipleChoices

	if acknowledged {
		x.mu.Lock()
		o.deeds.acknowledged(what, time.Now())
		x.mu.Unlock()
	}

	switch what {
	case "pause":
		o.deeds.Paused = o.deeds.Paused || done
	case "stop":
		o.deeds.Stopped = o.deeds.Stopped || done
	case "cancel":
		o.deeds.Canceled = o.deeds.Canceled || done
	case "resume":
		o.deeds.Paused = o.deeds.Paused && !acknowledged
		o.deeds.Resuming = done && !acknowledged
	}

	x.note("%s of sweep %s: %d %v", what, o, code, err)

	return acknowledged
}

// ask asks one server, and returns its status code.
func (x *chaos) ask(api *client.ClientWithResponses, id, what string) (int, error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), 3*time.Second)
	defer cancel()

	var (
		answer interface{ StatusCode() int }
		err    error
	)

	switch what {
	case "pause":
		answer, err = api.PauseSweepWithResponse(ctx, id)
	case "resume":
		answer, err = api.ResumeSweepWithResponse(ctx, id)
	case "stop":
		answer, err = api.StopSweepWithResponse(ctx, id)
	default:
		answer, err = api.CancelSweepWithResponse(ctx, id)
	}

	if err != nil {
		return 0, err
	}

	return answer.StatusCode(), nil
}

// breaks notes that an invariant is broken, once.
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

func (x *chaos) wronged() bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	return len(x.broken) > 0
}

// report prints the figures, and after a failure the schedule and what
// happened when.
func (x *chaos) report() {
	x.mu.Lock()
	defer x.mu.Unlock()

	faults := make([]string, 0, len(x.injected))
	for _, kind := range slices.Sorted(maps.Keys(x.injected)) {
		faults = append(faults, fmt.Sprintf("%d %s", x.injected[kind], kind))
	}

	byJob := map[string]int{}

	for _, o := range slices.Concat(x.sweeps, x.extra) {
		if o.id != "" {
			byJob[o.order.Job]++
		}
	}

	x.t.Logf("began at %s; troubles:\n%+v", x.began.UTC().Format(time.TimeOnly), x.troubles)
	x.t.Logf("%s, %s: sweeps %v, %d containers seen, %d results compared, %d judgements, invariants looked at %d times; events: %s",
		x.again, time.Since(x.began).Round(time.Second), byJob, len(x.seen), len(x.results), x.judgements, x.looks, strings.Join(faults, ", "))

	if x.t.Failed() || len(x.broken) > 0 || testing.Verbose() {
		x.t.Logf("schedule:\n%s", lines(x.plan))
		x.t.Logf("what happened when:\n%s", strings.Join(x.timeline, "\n"))
	}
}
