//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
)

// sceneGroup sets the shapes of scenes apart from those of the storm.
const sceneGroup = 10_000

// play plays a scene, and notes whether it had the effect that it is there for.
func (x *chaos) play(e event) {
	x.note("scene: %s", e.Kind)

	if x.scene(e) {
		x.injected["scene: "+e.Kind]++
	} else {
		x.idle = append(x.idle, e)
	}

	x.note("scene of %s is over", e.Kind)
}

// scene returns false when what it needs was not there.
func (x *chaos) scene(e event) bool {
	switch e.Kind {
	case "paused carrier":
		return x.carrier("pause")
	case "canceled carrier":
		return x.carrier("cancel")
	case "gap in a probe":
		return x.gap()
	case "host lost":
		return x.loseHost()
	case "host away":
		return x.sendAway(e)
	case "sick host":
		return x.sickenHost(e)
	case restoredDatabase:
		return x.restoreDatabase()
	case "emptied Temporal":
		x.emptyTemporal()

		return true
	default:
		x.t.Fatalf("nothing plays scene %q", e.Kind)

		return false
	}
}

// replay gives the scenes that had no effect in the storm another try without
// faults, one after the other. Those that have none then either show nothing.
func (x *chaos) replay() {
	idle := x.idle
	x.idle = nil

	for _, e := range idle {
		x.until(2*scenePatience, func() bool { return len(x.reachable(x.staying())) == len(x.staying()) })
		x.play(e)
		x.until(2*scenePatience, func() bool { return len(x.due) == 0 })
		x.mend(true)
	}

	for _, e := range x.idle {
		x.breaks("O2: scene %q had no effect, without faults either", e.Kind)
	}
}

// scenePatience is how long a scene waits for what it needs: longer than any
// fault lasts.
const scenePatience = 20 * time.Second

// newGroup is one that no other sweep has.
func (x *chaos) newGroup() int { return sceneGroup + len(x.extra) }

// sceneSweep submits a sweep of a scene, with a name of its own.
func (x *chaos) sceneSweep(o order) *ordered {
	o.Name = fmt.Sprintf("%s of scene %d", o.Job, len(x.extra))

	return x.submitExtra(o)
}

// runs reports whether a trial of a sweep runs. Which one is first is chance.
func (x *chaos) runs(o *ordered) bool {
	return slices.ContainsFunc(x.trialsOf(o), func(t client.Trial) bool { return t.State == client.TrialStateRunning })
}

// waitsBesides is the number of a trial that waits for a place while another
// of its sweep runs; 0 = none.
func (x *chaos) waitsBesides(o *ordered) (number int) {
	runs := false

	for _, t := range x.trialsOf(o) {
		runs = runs || t.State == client.TrialStateRunning

		if t.State != client.TrialStateRunning && len(t.Waiting) > 0 {
			number = t.Number
		}
	}

	if !runs {
		return 0
	}

	return number
}

// canceledLasts is how many ms a trial runs that must be canceled: longer than
// any calm.
const canceledLasts = 600_000

// carrier pauses or cancels a sweep one trial of which was chosen to measure
// its shape and waits for the other one to end, as max_parallel is 1. Another
// sweep has that shape as well, and must not wait for what became of the first.
func (x *chaos) carrier(what string) (effect bool) {
	group := x.newGroup()
	lasts := 6000

	if what == "cancel" { // a cancellation that stops no container leaves it beyond the calm
		lasts = canceledLasts
	}

	first := x.sceneSweep(order{Job: "carrier", Group: group, Times: []int{lasts}, MaxParallel: 1, Probe: "full"})

	waits := 0

	if first.id == "" || !x.until(scenePatience, func() bool {
		waits = x.waitsBesides(first)

		return waits > 0
	}) {
		x.note("the carrier was not ready in time: %s", x.openTrials(first))

		return false
	}

	if effect = x.steerTo(first, what); effect {
		x.sceneSweep(order{Job: "follower", Group: group, Times: []int{300, 310}, Probe: "full", Size: carrierSizes[waits-1]})
	}

	return effect
}

// gapAfter is shorter than what the late job takes until it takes its memory
// (3.6 s), and longer than a worker takes to say what it has measured (2 s).
const gapAfter = 2700 * time.Millisecond

// gap kills the worker that measures a shape and starts it again when the
// container, which takes its memory late, has ended. The other trials of the
// sweep run after it, as max_parallel is 1, with what was learned of it.
func (x *chaos) gap() bool {
	o := x.sceneSweep(order{Job: "late", Group: x.newGroup(), Times: []int{6000, 6010, 6020}, MaxParallel: 1})

	var carrier ours

	if !x.until(scenePatience, func() bool {
		for _, c := range x.ps() {
			if c.sweep == o.id && c.state == "running" {
				carrier = c
			}
		}

		return carrier.id != ""
	}) {
		x.note("the probe did not start in time")

		return false
	}

	h := x.requireHost(carrier.host)
	if !h.up() {
		return false
	}

	x.until(gapAfter, func() bool { return false }) // it has been measured by then, and is small
	x.takeAway(h)
	stop(h.worker, syscall.SIGKILL)
	x.until(10*time.Second, func() bool { return !x.lives(carrier.name) })
	x.fault("kill -9 of worker", h.name+", which measures "+carrier.name, 0, func() {
		h.away = false
		x.startWorker(h, binary)
	})

	return true
}

// loseHost takes a host away for good, with what runs on it: that of a sweep
// which runs one trial at a time, and that of others.
func (x *chaos) loseHost() bool {
	narrow := x.sceneSweep(order{Job: "steady", Times: []int{4000, 4010, 4020, 4030}, MaxParallel: 1})
	x.sceneSweep(order{Job: "steady", Times: []int{4000, 4010, 4020, 4030, 4040, 4050}, MaxParallel: 2})

	var (
		id string
		h  *host
	)

	if !x.until(scenePatience, func() bool {
		h = nil

		for _, c := range x.ps() {
			if c.sweep == narrow.id && c.state == "running" {
				id, h = c.host, x.requireHost(c.host)
			}
		}

		return h != nil && h.up()
	}) {
		x.note("nothing ran that a host could be lost with")

		return false
	}

	x.takeAway(h)
	x.begins(breakdown, h.name, time.Now())

	x.mu.Lock()
	x.lost = append(x.lost, h.name)
	x.mu.Unlock()

	stop(h.worker, syscall.SIGKILL)

	for _, c := range x.ps() {
		if c.host == id {
			_ = exec.Command("docker", "rm", "--force", c.id).Run() //nolint:noctx // our own container
		}
	}

	x.fault("lost for good", h.name, 0, nil)

	return true
}

const (
	// awayLasts is longer than any patience with a host: one without Temporal is
	// unready after 20 s, a silent one is lost after 45 s, and its leases are
	// suspect after 60 s.
	awayLasts = 75 * time.Second
	// awaySettles is how long a host that is back may take to be as if it had
	// not gone: gRPC finds a dead connection after 45 s, and then the reconciler's
	// rounds, its grace and the end of containers follow.
	awaySettles = 45*time.Second + fastGrace + 4*fastReconcile + 10*time.Second
)

// sendAway freezes a host, or cuts it from Temporal alone, for longer than
// anything waits for it, and lets it come back. Long trials run there, and run
// elsewhere then.
func (x *chaos) sendAway(e event) bool {
	o := x.sceneSweep(order{Job: "vigil", Times: []int{canceledLasts, canceledLasts + 10, canceledLasts + 20}})

	var h *host

	if o.id == "" {
		return false
	}

	if !x.until(scenePatience, func() bool {
		for _, c := range x.ps() {
			if c.sweep == o.id && c.state == "running" {
				h = x.requireHost(c.host)

				return h.up() && !h.cut
			}
		}

		return false
	}) {
		x.note("nothing ran on a host that could go away")
		x.steerTo(o, "cancel") // else the calm does

		return false
	}

	e.Lasts = awayLasts
	if e.Pick%2 == 0 {
		x.freezeWorker(h, e)
	} else {
		x.partition(h, e, false, true)
	}

	x.until(awayLasts-10*time.Second, func() bool { return false })
	missed := x.missed(h)
	x.note("%s is missed: %t; of it are left: %s", h.name, missed, strings.Join(x.leftOf(h), "; "))
	x.until(2*awayLasts, func() bool { return h.up() && !h.cut })

	var left []string

	if !x.until(awaySettles, func() bool {
		left = x.leftOf(h)

		return left != nil && len(left) == 0
	}) {
		x.breaks("I5: %s after %s was back from %s away: %s", awaySettles, h.name, awayLasts, strings.Join(left, "; "))
	}

	x.steerTo(o, "cancel")

	return missed
}

// missed reports whether a host is out of service, as far as Berth can tell.
func (x *chaos) missed(h *host) bool {
	answer, err := x.api.ListHostsWithResponse(x.t.Context())

	return err == nil && answer.JSON200 != nil && len(outOfService(answer.JSON200.Data, []string{h.name})) > 0
}

// leftOf says what a host still has of the time in which it was away: leases
// that are neither held nor released, and containers of attempts that are over.
// Nil = it cannot be told.
func (x *chaos) leftOf(h *host) []string {
	var attempts []string

	for _, c := range x.ps() {
		if c.state == "running" && x.hostOf(c.host) == h {
			attempts = append(attempts, x.attemptOf(c.name))
		}
	}

	suspected, err := x.inspect(func(i *pgtest.Inspector, ctx context.Context) ([]string, error) { return i.Suspected(ctx, h.name) })
	if err != nil {
		return nil
	}

	over, err := x.inspect(func(i *pgtest.Inspector, ctx context.Context) ([]string, error) { return i.OutOfForce(ctx, attempts) })
	if err != nil {
		return nil
	}

	return tellLeft(suspected, over)
}

func tellLeft(suspected, over []string) []string {
	left := []string{}

	for _, lease := range suspected {
		left = append(left, "the lease of "+lease+" is suspect")
	}

	for _, attempt := range over {
		left = append(left, "the container of attempt "+attempt+" runs, which is over")
	}

	return left
}

// sickenHost has the Docker of a host refuse every start, while a sweep wants to
// use all hosts.
func (x *chaos) sickenHost(e event) bool {
	h := x.hosts[e.Host%len(x.hosts)]
	p := x.docker[h.name]

	if !x.until(scenePatience, func() bool { return h.up() && !h.cut && p.mode.Load() == dockerWell }) {
		x.note("%s was broken already", h.name)

		return false
	}

	refused := p.starts.Load()

	x.spoilDocker(h, e, dockerSick)
	x.due = append(x.due, repair{time.Now().Add(e.Lasts), "count of refused starts", func() {
		x.note("%s refused %d starts", h.name, p.starts.Load()-refused)
	}})
	x.sceneSweep(order{Job: "steady", Times: []int{600, 610, 620, 630, 640, 650, 660, 670}})

	return x.until(e.Lasts, func() bool { return p.starts.Load() > refused })
}

const (
	// A sweep stores 16 trials at once, and more as those end: of these two the
	// copy lacks the last trials. The one goes on when the database is back, the
	// other has ended.
	longTrials  = 32
	briefTrials = 18
	// forgetPatience is how long what the copy lacks may take.
	forgetPatience = 2 * time.Minute
)

// restoreDatabase takes a copy of the database while a sweep runs, and puts it
// back when more of its trials were stored since, two paused sweeps were resumed,
// one of which has ended, another was canceled and one submitted.
func (x *chaos) restoreDatabase() bool {
	long := x.sceneSweep(order{Job: "steady", Times: spread(1500, longTrials), MaxParallel: 2})
	brief := x.sceneSweep(order{Job: "steady", Times: spread(200, briefTrials)})
	paused := x.sceneSweep(order{Job: "steady", Times: spread(1500, 4), MaxParallel: 1})
	canceled := x.sceneSweep(order{Job: "steady", Times: spread(3500, 4), MaxParallel: 1})

	if long.id == "" || brief.id == "" || paused.id == "" || canceled.id == "" || !x.steerTo(brief, "pause") || !x.steerTo(paused, "pause") ||
		!x.until(scenePatience, func() bool { return x.runs(long) }) {
		x.note("nothing ran that could be forgotten")

		return false
	}

	if _, ok := x.healthySince("PostgreSQL"); !ok {
		return false
	}

	known, counters := x.endedNow()
	ended := x.inspected((*pgtest.Inspector).EndedTrials)
	old := map[*ordered]copied{}

	for _, one := range x.all() {
		old[one] = copied{ended: known["sweep "+one.id] != "", paused: one.deeds.Paused}
	}

	x.begins(breakdown, "", time.Now())
	backup := x.backup()

	x.note("database copied")

	hadLong, hadBrief := 0, 0 // the copy has no more
	x.until(scenePatience, func() bool {
		hadLong, hadBrief = len(x.trialsOf(long)), len(x.trialsOf(brief))

		return hadLong > 0
	})

	late := x.sceneSweep(order{Job: "steady", Times: spread(2500, 3)})
	gone := x.steerTo(canceled, "cancel")
	lacks := x.steerTo(brief, "resume") && hadLong > 0 && hadLong < longTrials && hadBrief < briefTrials && x.until(forgetPatience, func() bool {
		s, _ := x.read(brief)

		return s.FinishedAt != nil && s.Counts.Total > hadBrief && len(x.trialsOf(long)) > hadLong
	})
	resumed := x.steerTo(paused, "resume")
	x.until(5*time.Second, func() bool { return false })
	x.note("the copy has up to %d and %d trials of sweeps %s and %s, and lacks some: %t", hadLong, hadBrief, long, brief, lacks)

	forgotten := map[string]bool{}
	for _, trial := range x.inspected((*pgtest.Inspector).BegunTrials) {
		forgotten[trial] = !slices.Contains(ended, trial)
	}

	x.mu.Lock()
	x.graced = time.Now().Add(time.Hour)
	x.mu.Unlock()
	x.broke("PostgreSQL")
	x.restore(backup)
	x.forgetContainers()
	x.recovered("PostgreSQL")
	x.forget(old)

	// A reconciler's grace and a few of its rounds clear what nobody knows.
	x.mu.Lock()
	for trial, is := range x.forgotten { // by an earlier restore
		forgotten[trial] = forgotten[trial] || is
	}

	x.heals = chaosHeals
	x.graced, x.results, x.counters, x.forgotten = time.Now().Add(fastGrace+6*fastReconcile+20*time.Second), known, counters, forgotten
	x.mu.Unlock()
	x.ends(breakdown, "", x.graced)
	x.fault("restored", "PostgreSQL", 0, nil)

	return late.id != "" && resumed && gone && lacks
}

// spread are the times of n trials from that many ms on.
func spread(ms, n int) []int {
	times := make([]int, n)
	for i := range times {
		times[i] = ms + 10*i
	}

	return times
}

// copied is what a copy of the database says of a sweep.
type copied struct{ ended, paused bool }

// forget notes what a restored database does not know of sweeps: those that the
// copy lacks, what was done to the others since, and that they ended.
func (x *chaos) forget(old map[*ordered]copied) {
	for _, one := range x.all() {
		was, existed := old[one]
		one.forgettable = one.forgettable || !existed // also of an earlier restore
		one.judged = one.judged && was.ended          // the others end once more

		if was.ended {
			continue
		}

		x.mu.Lock()
		one.deeds.Paused = one.deeds.Paused || was.paused
		one.deeds.forget()
		delete(x.waited, one.id)
		x.mu.Unlock()
	}
}

// forgetContainers forgets those that are gone: an attempt that had ended, of
// which neither the copy nor Temporal heard, is run again.
func (x *chaos) forgetContainers() {
	there := make(map[string]bool)
	for _, c := range x.ps() {
		there[c.name] = true
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	maps.DeleteFunc(x.seen, func(name, _ string) bool { return !there[name] })
}

// inspected asks the database, which must be up.
func (x *chaos) inspected(what func(*pgtest.Inspector, context.Context) ([]string, error)) []string {
	found, err := x.inspect(what)
	require.NoError(x.t, err)

	return found
}

func (x *chaos) inspect(what func(*pgtest.Inspector, context.Context) ([]string, error)) ([]string, error) {
	inspector, err := pgtest.Inspect(x.t.Context(), x.postgres.URL)
	if err != nil {
		return nil, err
	}
	defer inspector.Close(context.WithoutCancel(x.t.Context()))

	return what(inspector, x.t.Context())
}

const (
	vigilPatience = time.Minute      // until all trials of the vigil run
	emptyWatch    = 40 * time.Second // four rounds of looking for sweeps without a workflow
	// vigilLasts is how many ms the first of them runs: until the watch is over,
	// however late the others and Temporal start.
	vigilLasts = int((vigilPatience + startTimeout + 2*emptyWatch) / time.Millisecond)
)

// emptyTemporal ends the storm: all faults are over, sweeps run, and Temporal
// comes back without anything that it knew. It is an alarm and no reason to
// end anything: containers run on, and no sweep is canceled.
func (x *chaos) emptyTemporal() {
	x.mend(true)
	x.emptied = true

	vigil := x.sceneSweep(order{Job: "vigil", Times: []int{vigilLasts, vigilLasts + 10, vigilLasts + 20}})

	var before []ours

	if vigil.id == "" || !x.until(vigilPatience, func() bool {
		before = nil

		for _, c := range x.ps() {
			if c.sweep == vigil.id && c.state == "running" {
				before = append(before, c)
			}
		}

		return len(before) == 3
	}) {
		x.breaks("O2: sweep %s did not start in a minute without faults: %s%s", vigil, x.openTrials(vigil), x.stuckPlacing())

		return
	}

	open := map[*ordered]client.SweepState{}

	for _, o := range x.all() {
		if s, found := x.read(o); found == isThere && s.FinishedAt == nil {
			open[o] = s.State
		}
	}

	x.broke("Temporal")
	x.killTemporal()

	stale, err := filepath.Glob(filepath.Join(x.dir, "temporal", "temporal.db*"))
	require.NoError(x.t, err)
	require.NotEmpty(x.t, stale)

	for _, file := range stale {
		require.NoError(x.t, os.Remove(file))
	}

	x.startTemporal()
	x.fault("emptied", "Temporal", emptyWatch, nil)

	x.until(emptyWatch, func() bool {
		x.unharmed(open, before)

		return false
	})

	alarm := x.alarm("temporal")
	x.note("healthz says of Temporal: %q", alarm)

	if alarm == "" {
		x.breaks("O3: Temporal came back empty, and healthz raises no alarm about it")
	}

	x.judgeAll(judgePatience) // of those that have ended
}

// alarm is a finding of healthz that something is wrong and that names a part;
// empty = there is none.
func (x *chaos) alarm(part string) string {
	var answer struct {
		Findings []struct {
			OK   bool   `json:"ok"`
			Part string `json:"part"`
			What string `json:"what"`
			Next string `json:"next"`
		} `json:"findings"`
	}

	require.NoError(x.t, json.Unmarshal([]byte(x.health()), &answer))

	for _, f := range answer.Findings {
		if text := f.Part + ": " + f.What + "; " + f.Next; !f.OK && strings.Contains(strings.ToLower(text), part) {
			return text
		}
	}

	return ""
}

// unharmed checks that nothing was ended because its workflow is not there: a
// trial that has ended, of a sweep that goes on, ended as its job declares.
func (x *chaos) unharmed(open map[*ordered]client.SweepState, before []ours) {
	for o, was := range open {
		s, found := x.read(o)
		if found != isThere || o.deeds.Canceled || o.deeds.Terminated || o.deeds.Stopped || was == client.SweepStateCanceling {
			continue
		}

		ended := s.State == client.SweepStateCanceled || s.State == client.SweepStateCanceling

		if r, told := x.record(x.api, o, s); told && !ended {
			ended = s.State == client.SweepStateFailed && len(judgeSweep(o.order, o.deeds, r)) > 0 // it may have ended by itself before
			r.Trials = slices.DeleteFunc(r.Trials, func(t trialRecord) bool { return t.FinishedAt.IsZero() })

			for _, wrong := range judgeTrials(o.order, o.deeds, r.Trials) {
				x.breaks("O3: of sweep %s, when Temporal came back empty, %s", o, wrong)
			}
		}

		if ended {
			x.breaks("O3: sweep %s was %s and became %s (%s) when Temporal came back empty", o, was, s.State, s.Reason)
		}
	}

	for _, c := range before {
		if !x.lives(c.name) {
			x.breaks("O3: container %s of sweep %s was stopped when Temporal came back empty", c.name, c.sweep)
		}
	}
}
