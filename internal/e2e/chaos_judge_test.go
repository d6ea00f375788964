//go:build integration

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflow/v1"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
)

// judging is a chaos without a stack, whose servers answer as told.
func judging(t *testing.T, servers ...http.HandlerFunc) *chaos {
	t.Helper()

	x := &chaos{cluster: &cluster{stack: stack{t: t}}, began: time.Now(), injected: map[string]int{}}

	for _, answer := range servers {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)

		api, err := client.NewClientWithResponses(server.URL + "/api/v1")
		require.NoError(t, err)

		x.apis = append(x.apis, api)
	}

	if len(x.apis) > 0 {
		x.api = x.apis[0]
	}

	return x
}

// status answers everything with a code.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// What had ended before a database was copied is compared with what is there
// once the grace after the restore is over, and not with what was seen in it.
func TestChaosJudge_ComparesAcrossARestore(t *testing.T) {
	t.Parallel()

	before := map[string]string{"sweep 1": "succeeded"}
	changed := map[string]string{"sweep 1": "canceled"}

	x := judging(t)
	x.results, x.counters, x.graced = before, map[string]int64{"trials": 7}, time.Now().Add(time.Hour)
	x.compare(changed, map[string]int64{"trials": 5})
	x.compare(changed, map[string]int64{"trials": 6})
	require.Empty(t, x.broken)

	x.graced = time.Now().Add(-time.Second)
	x.compare(changed, map[string]int64{"trials": 6})
	require.Len(t, x.broken, 2)
	require.Contains(t, x.broken[0], `I3: the end of sweep 1 changed from "succeeded" to "canceled"`)
	require.Contains(t, x.broken[1], "I6: trials went back from 7 to 6")
}

// A restored database may lack the results of trials that ran in between, and
// of no others.
func TestChaosJudge_ForgetsOnlyWhatWasBetween(t *testing.T) {
	t.Parallel()

	x := judging(t)
	x.forgotten = map[string]bool{"a": true, "b": true}

	require.Equal(t, []string{pgtest.HasResult + ": c", "I4 an end has a cause: a"}, x.withoutForgotten([]string{
		pgtest.HasResult + ": a; c; b", pgtest.SameResult + ": b of sweep s trial 1 has 1, its attempt none", "I4 an end has a cause: a",
	}))
}

// What was refused has not happened; what was not answered may have.
func TestChaosJudge_OnlyWhatMayHaveHappenedExcuses(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		codes   []int
		excuses bool
	}{
		{[]int{http.StatusConflict}, false},
		{[]int{http.StatusOK}, true},
		{[]int{http.StatusServiceUnavailable, http.StatusConflict}, true},
		{[]int{http.StatusServiceUnavailable, http.StatusServiceUnavailable}, true},
		{[]int{http.StatusNotFound}, false},
	} {
		var answers []http.HandlerFunc
		for _, code := range c.codes {
			answers = append(answers, status(code))
		}

		x, o := judging(t, answers...), &ordered{id: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1"}
		for _, what := range []string{"pause", "stop", "cancel"} {
			x.steerTo(o, what)
		}

		acknowledged := c.codes[0] == http.StatusOK
		require.Equal(t, acknowledged, len(o.deeds.Pauses) == 1 && !o.deeds.StoppedAt.IsZero() && !o.deeds.CanceledAt.IsZero(), "%v", c.codes)
		o.deeds.forget()
		require.Equal(t, deeds{Paused: c.excuses, Stopped: c.excuses, Canceled: c.excuses, Restored: true}, o.deeds, "%v", c.codes)
	}
}

// Everybody has heard of a cancellation once all that carries the news was up
// for so long since its acknowledgement.
func TestChaosJudge_ACancellationIsDueAfterATimeWithoutFaults(t *testing.T) {
	t.Parallel()

	ago := time.Now().Add(-time.Minute)
	x, o := judging(t), &ordered{id: "canceled"}
	x.waited, x.sweeps, x.hosts = map[string]time.Duration{}, []*ordered{o}, []*host{{name: "host-1"}}
	x.healthy = map[string]time.Time{"server": ago, "second server": ago, "PostgreSQL": ago, "host-1": ago}

	x.lookAtCancellations(time.Hour)
	o.deeds.acknowledged("cancel", time.Now())
	x.lookAtCancellations(time.Hour)
	require.Zero(t, o.deeds.CancelDue, "Temporal is away")

	x.healthy["Temporal"] = ago
	x.lookAtCancellations(cancelPatience - 1)
	require.Zero(t, o.deeds.CancelDue)
	x.lookAtCancellations(1)
	require.NotZero(t, o.deeds.CancelDue)
}

// A pause holds from its acknowledgement until a resume is asked for. One that
// was not answered may come after the next pause, so that this one holds nothing.
func TestChaosJudge_APauseHoldsUntilAResumeIsAskedFor(t *testing.T) {
	t.Parallel()

	var lost atomic.Bool

	x := judging(t, func(w http.ResponseWriter, _ *http.Request) {
		if lost.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	o := &ordered{id: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1"}

	x.steerTo(o, "pause")
	x.steerTo(o, "pause")
	require.Len(t, o.deeds.Pauses, 1)
	require.True(t, o.deeds.Pauses[0].holds(time.Now().Add(time.Hour)))

	x.steerTo(o, "resume")
	require.False(t, o.deeds.Pauses[0].holds(time.Now().Add(time.Hour)))

	x.steerTo(o, "pause")
	require.Len(t, o.deeds.Pauses, 2)

	lost.Store(true)
	x.steerTo(o, "resume")
	lost.Store(false)
	x.steerTo(o, "pause")
	require.Len(t, o.deeds.Pauses, 2)

	x.steerTo(o, "resume")
	x.steerTo(o, "pause")
	require.Len(t, o.deeds.Pauses, 3)
}

// A server that accepts nothing for good is no green run.
func TestChaosJudge_InsistsOnBeingAccepted(t *testing.T) {
	t.Parallel()

	for _, code := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		x := judging(t, status(code), status(code))
		x.submitExtra(order{Job: "canary", Name: "canary of the calm", Probe: "off", Times: []int{100}})
		require.Empty(t, x.broken, "in a storm it may be so")

		x.insist(time.Second)
		require.Len(t, x.broken, 1)
		require.Contains(t, x.broken[0], "O4: canary of the calm was not accepted")
	}
}

// What cannot be read is not right: the last judgement tries again, and then
// complains.
func TestChaosJudge_DemandsToBeTold(t *testing.T) {
	t.Parallel()

	const sweep = `{"id": "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1", "name": "steady 1", "state": "succeeded",
		"finished_at": "2026-01-01T00:00:00Z", "spec": {}}`

	answer := func(r *http.Request, failing string, left *atomic.Int32) (int, string) {
		switch {
		case strings.HasSuffix(r.URL.Path, failing) && left.Add(-1) >= 0:
			return http.StatusInternalServerError, "{}"
		case strings.HasSuffix(r.URL.Path, "/trials"), strings.HasSuffix(r.URL.Path, "/attempts"):
			return http.StatusOK, `{"data": []}`
		default:
			return http.StatusOK, sweep
		}
	}

	for name, c := range map[string]struct {
		path  string
		times int32
		want  string
	}{
		"attempts for good":       {"/attempts", 1 << 30, "cannot be judged: the server did not tell its trials and attempts"},
		"trials for good":         {"/trials", 1 << 30, "cannot be judged: the server did not tell its trials and attempts"},
		"the sweep for good":      {"f0a1", 1 << 30, "cannot be judged: the server did not tell its state"},
		"the attempts at first":   {"/attempts", 2, ""},
		"a sweep that is not one": {"/nothing", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var left atomic.Int32

			left.Store(c.times)

			x := judging(t, func(w http.ResponseWriter, r *http.Request) {
				code, body := answer(r, c.path, &left)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = w.Write([]byte(body))
			})
			x.extra = []*ordered{{
				id: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1", order: order{Job: "mutant", Name: "steady 1"},
				acked: client.Sweep{Name: "steady 1", Spec: []byte("{}")},
			}}

			x.judgeAll(time.Second)

			if c.want == "" {
				require.Empty(t, x.broken)
				require.Equal(t, 1, x.judgements)
			} else {
				require.Len(t, x.broken, 1)
				require.Contains(t, x.broken[0], c.want)
				require.Zero(t, x.judgements)
			}
		})
	}
}

func TestChaosJudge_SameJSON(t *testing.T) {
	t.Parallel()

	require.True(t, sameJSON([]byte(`{"a": 1, "b": 2}`), []byte(`{"b": 2, "a": 1}`)))
	require.False(t, sameJSON([]byte(`{"a": 1}`), []byte(`{"a": 2}`)))
	require.False(t, sameJSON(nil, []byte("{}")))
	require.False(t, sameJSON([]byte("{}"), nil))
}

// A failure says all that its schedule depends on.
func TestChaosJudge_SaysHowToRepeat(t *testing.T) {
	t.Setenv("CHAOS_JOBS", "steady,late")
	t.Setenv("CHAOS_SCENES", "host lost")
	t.Setenv("CHAOS_KINDS", "")

	text := repeats(7, 90*time.Second)
	require.Contains(t, text, `CHAOS_SEED=7 CHAOS_DURATION=1m30s CHAOS_JOBS="steady,late" CHAOS_SCENES="host lost"`)
	require.NotContains(t, text, "CHAOS_KINDS")
}

// Sweeps that have ended are asked about once.
func TestChaosJudge_AwaitsOnlyWhatIsOpen(t *testing.T) {
	t.Parallel()

	var asked, slow atomic.Int32

	x := judging(t, func(w http.ResponseWriter, r *http.Request) {
		ended := `, "finished_at": "2026-01-01T00:00:00Z"`
		if asked.Add(1); strings.HasSuffix(r.URL.Path, "slow") && slow.Add(1) < 3 {
			ended = ""
		}

		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id": "x", "name": "x", "state": "running"` + ended + `}`))
	})
	x.stuck, x.extra = time.Minute, []*ordered{{id: "slow"}, {id: "done"}}

	x.await("in a test", func(client.Sweep) bool { return false })
	require.Empty(t, x.broken)
	require.EqualValues(t, 4, asked.Load())
}

// A part that ends and was not asked to is no part that runs, whatever becomes
// of it then.
func TestChaosJudge_SeesAPartEndByItself(t *testing.T) {
	t.Parallel()

	for program, says := range map[string]string{"false": "O5: host-1 ended by itself: exit status 1", "cat": ""} {
		x := judging(t)
		x.dir, x.awaited = t.TempDir(), map[string]int{}
		h := &host{name: "host-1"}

		cmd := exec.Command(program) //nolint:noctx // stopped below
		in, err := cmd.StdinPipe()   // cat waits for its end
		require.NoError(t, err)
		t.Cleanup(func() { _ = in.Close() })

		h.worker = launch(t, cmd, filepath.Join(x.dir, "host-1.log"), os.O_APPEND)
		x.guard(h.name, h.worker)

		if says != "" {
			require.Eventually(t, func() bool { return !lives(h.worker) }, time.Minute, tick)
		}

		x.endWorker(h, event{Kind: "kill -9 of worker"}, syscall.SIGKILL, program)
		require.False(t, lives(h.worker))

		if says == "" {
			never(t, 3*tick, x.wronged)

			continue
		}

		require.Eventually(t, x.wronged, time.Minute, tick)
		require.Contains(t, x.broken[0], says)
	}
}

// told is a test that takes down what it is told.
type told struct {
	testing.TB

	errors []string
}

func (e *told) Errorf(format string, args ...any) {
	e.errors = append(e.errors, fmt.Sprintf(format, args...))
}

// A process that ignores its signal holds up no test, and fails it.
func TestProcess_StopHasAnEnd(t *testing.T) {
	t.Parallel()

	e := &told{TB: t}
	out := filepath.Join(t.TempDir(), "log")
	cmd := launch(e, exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"), out, os.O_TRUNC) //nolint:noctx // stopped below

	require.Eventually(t, func() bool { return readFile(t, out) != "" }, time.Minute, tick)
	childOf(cmd).end(cmd, syscall.SIGTERM, 2*tick)
	require.False(t, lives(cmd))
	require.Len(t, e.errors, 1)
	require.Contains(t, e.errors[0], "did not end in 200ms after terminated")
}

// A container may use what its lease holds, neither more nor less.
func TestChaosJudge_ComparesLimitAndLease(t *testing.T) {
	t.Parallel()

	x := judging(t)
	x.instance, x.limited = "e2e-1", map[string]bool{}
	reserved := map[string]int64{"a": 64 * mib, "b": 64 * mib, "d": 64 * mib}

	x.judgeLimit("/berth-e2e-1-a 67108864\n", reserved)
	x.judgeLimit("/berth-e2e-1-c 67108864\n", reserved)
	x.judgeLimit("/berth-e2e-1-d 2214592512 mps\n", reserved)
	require.Empty(t, x.broken)

	x.judgeLimit("/berth-e2e-1-b 0\n", reserved)
	require.Equal(t, []string{"I2: the container of attempt b may use 0 bytes, its lease holds 67108864"}, x.broken)
	require.Equal(t, map[string]bool{"a": true, "b": true, "d": true}, x.limited)
}

// A worker is away from its death until its successor says that it serves.
func TestChaosJudge_AWorkerIsAwayUntilItServes(t *testing.T) {
	t.Parallel()

	x, h := judging(t), &host{name: "host-1"}
	x.dir, x.awaited = t.TempDir(), map[string]int{"host-1": 2}

	x.takeAway(h)

	for text, serves := range map[string]bool{"worker serves\n": false, "worker serves\nworker serves\n": true} {
		require.NoError(t, os.WriteFile(filepath.Join(x.dir, "host-1.log"), []byte(text), 0o600))
		x.noticeServing()
		require.Equal(t, serves, !x.troubles[0].until.IsZero(), text)

		x.troubles[0].until, x.awaited["host-1"] = time.Time{}, 2
	}
}

// A trial waits for a lost host only when no other one could ever hold it.
func TestChaosJudge_WaitsOnlyForWhatOnlyALostHostHolds(t *testing.T) {
	t.Parallel()

	lost := client.Rejection{HostName: "host-1", Reason: "host host-1: its worker does not answer; the trial waits for it to come back"}
	small := client.Rejection{HostName: "host-2", Reason: "needs 900 MiB of 768", Never: true}
	full := client.Rejection{HostName: "host-2", Reason: "needs 64 MiB, 0 free"}

	require.True(t, onlyLostHolds([]client.Rejection{lost, small}, []string{"host-1"}))
	require.True(t, onlyLostHolds([]client.Rejection{lost}, []string{"host-1"}))
	require.False(t, onlyLostHolds([]client.Rejection{lost, full}, []string{"host-1"}))
	require.False(t, onlyLostHolds([]client.Rejection{small}, []string{"host-1"}))
	require.False(t, onlyLostHolds([]client.Rejection{lost, small}, nil), "it is not lost for good")
	require.False(t, onlyLostHolds([]client.Rejection{lost, {Reason: "the sweep's max_parallel is reached"}}, []string{"host-1"}))
	require.False(t, onlyLostHolds(nil, []string{"host-1"}))
}

// Every host that is not lost must be in service in the end.
func TestChaosJudge_DemandsHostsBack(t *testing.T) {
	t.Parallel()

	hosts := []client.Host{
		{Name: "host-1", State: "ready", CPUMilli: 2000},
		{Name: "host-2", State: "unready", Problem: "no Docker", CPUMilli: 2000},
		{Name: "host-3", State: "ready", Problem: "kept", CPUMilli: 1000},
	}

	require.Empty(t, outOfService(hosts, []string{"host-1"}))
	require.Equal(t, []string{"host-2 is unready (no Docker)", "host-3 is ready (kept)", "host-4 is not listed"},
		outOfService(hosts, []string{"host-1", "host-2", "host-3", "host-4"}))
	require.Equal(t, []int{rollLasts, rollLasts + 10, rollLasts + 20}, rollTimes(hosts, []string{"host-1", "host-3"}, func(h client.Host) int { return int(h.CPUMilli) / 1000 }))
}

// A canary that could go on and does not is overdue.
func TestChaosJudge_CanariesStartSoon(t *testing.T) {
	t.Parallel()

	up, roomy := []string{"host-1", "host-2"}, []string{"host-2"}
	waiting, placed, started := pgtest.Canary{}, pgtest.Canary{Host: "host-1"}, pgtest.Canary{Host: "host-1", Started: true}

	require.True(t, overdue(waiting, false, up, roomy))
	require.False(t, overdue(waiting, false, up, nil), "there is no room")
	require.True(t, overdue(placed, false, up, nil), "its workflow has not heard of its place")
	require.False(t, overdue(placed, false, []string{"host-2"}, roomy), "its host is broken")
	require.False(t, overdue(started, false, up, roomy))
	require.True(t, overdue(started, true, up, roomy), "the one of the calm must end")
	require.False(t, overdue(started, true, nil, nil))

	require.Equal(t, "to be placed while host-2 was healthy and had room", waitsFor(waiting, roomy))
	require.Equal(t, "to start on host-1, which was healthy", waitsFor(placed, nil))
}

// A scene that has no effect, without faults either, is no green run.
func TestChaosJudge_ScenesHaveAnEffect(t *testing.T) {
	t.Parallel()

	x := judging(t, status(http.StatusServiceUnavailable))
	x.healthy = map[string]time.Time{}

	x.play(event{Kind: "canceled carrier"}) // nothing accepts its sweep
	require.Empty(t, x.injected)
	require.Len(t, x.idle, 1)
	require.False(t, x.wronged(), "it has another try")

	x.replay()
	require.Equal(t, []string{`O2: scene "canceled carrier" had no effect, without faults either`}, x.broken)
	require.Empty(t, x.injected)
}

// A restored database may say that a sweep is paused which was resumed since,
// may lack one that was submitted since, and forgets what was asked for.
func TestChaosJudge_ForgetsWhatWasDoneSinceTheCopy(t *testing.T) {
	t.Parallel()

	x := judging(t)
	ended, resumed, late := &ordered{id: "ended", judged: true}, &ordered{id: "resumed", judged: true}, &ordered{id: "late"}
	x.sweeps, x.waited = []*ordered{ended, resumed, late}, map[string]time.Duration{"late": time.Hour}

	for _, o := range x.sweeps {
		o.deeds.acknowledged("cancel", time.Now())
	}

	x.forget(map[*ordered]copied{ended: {ended: true}, resumed: {paused: true}})

	require.True(t, ended.judged)
	require.NotZero(t, ended.deeds.CanceledAt)
	require.False(t, resumed.judged)
	require.True(t, resumed.deeds.Paused)
	require.Zero(t, resumed.deeds.CanceledAt)
	require.True(t, late.forgettable)
	require.False(t, resumed.forgettable)
	require.Empty(t, x.waited)
}

// A sweep that has continued as new, or may before it hears, is told late that a
// workflow of its trials ended.
func TestChaosJudge_EndsNoTrialOfASweepThatHearsLate(t *testing.T) {
	t.Parallel()

	run := func(id, first string, events int64) *workflow.WorkflowExecutionInfo {
		return &workflow.WorkflowExecutionInfo{Execution: &common.WorkflowExecution{RunId: id}, FirstRunId: first, HistoryLength: events}
	}

	require.Empty(t, continues(run("a", "a", continueSoon)))
	require.Equal(t, "it has continued as new", continues(run("b", "a", 3)))
	require.Contains(t, continues(run("a", "a", continueSoon+1)), "it may continue as new")
}

// A host that was away has leases that are suspect and containers of attempts
// that are over, until it has looked.
func TestChaosJudge_AHostThatWasAwaySettles(t *testing.T) {
	t.Parallel()

	require.Empty(t, tellLeft(nil, nil))
	require.NotNil(t, tellLeft(nil, nil), "it was told")
	require.Equal(t, []string{"the lease of a of sweep s is suspect", "the container of attempt b runs, which is over"},
		tellLeft([]string{"a of sweep s"}, []string{"b"}))
}

// The ledger has the sweeps that were acknowledged and no others.
func TestChaosJudge_ComparesTheSweepsThatAreThere(t *testing.T) {
	t.Parallel()

	x := judging(t)
	x.sweeps = []*ordered{{id: "a"}, {id: "b", forgettable: true}, {refused: true}}
	x.extra = []*ordered{{id: "c"}}

	require.Empty(t, x.judgeExistence([]string{"a", "b", "c"}))
	require.Empty(t, x.judgeExistence([]string{"c", "a"}), "a restored database has forgotten b")
	require.Equal(t, []string{"O4: sweep d is there, and its submission was never acknowledged"}, x.judgeExistence([]string{"a", "c", "d"}))

	gone := x.judgeExistence([]string{"c"})
	require.Len(t, gone, 1)
	require.Contains(t, gone[0], "I7: sweep a")
}

// An attempt is placed only while fewer others of its sweep than max_parallel run.
func TestChaosJudge_CountsMaxParallel(t *testing.T) {
	t.Parallel()

	now := time.Now()
	one := pgtest.Bounded{Attempt: "a", Sweep: "s", Host: "host-1", PlacedAt: now.Add(-time.Minute), MaxParallel: 1}
	next := pgtest.Bounded{Attempt: "b", Sweep: "s", Host: "host-2", PlacedAt: now.Add(time.Second), MaxParallel: 1}

	for name, c := range map[string]struct {
		edit    func(*chaos, *pgtest.Bounded)
		wronged bool
	}{
		"one too many":                {func(*chaos, *pgtest.Bounded) {}, true},
		"two are allowed":             {func(_ *chaos, b *pgtest.Bounded) { b.MaxParallel = 2 }, false},
		"of another sweep":            {func(_ *chaos, b *pgtest.Bounded) { b.Sweep = "other" }, false},
		"given back":                  {func(_ *chaos, b *pgtest.Bounded) { b.PlacedAt = now.Add(-time.Minute) }, false},
		"beside one that comes back":  {func(x *chaos, _ *pgtest.Bounded) { x.recovered("host-1") }, false},
		"beside one on a broken host": {func(x *chaos, _ *pgtest.Bounded) { x.broke("host-1") }, false},
		"in a restored database":      {func(x *chaos, _ *pgtest.Bounded) { x.graced = now.Add(time.Hour) }, false},
	} {
		x, b := judging(t), next
		x.healthy = map[string]time.Time{"host-1": now.Add(-time.Hour), "host-2": now}
		c.edit(x, &b)

		x.judgeParallel([]pgtest.Bounded{one}, now)
		x.judgeParallel([]pgtest.Bounded{one, b}, now.Add(2*time.Second))
		x.judgeParallel([]pgtest.Bounded{one, b}, now.Add(3*time.Second))
		require.Equal(t, c.wronged, x.wronged(), "%s: %v", name, x.broken)
	}

	x := judging(t)
	x.healthy = map[string]time.Time{"host-1": now.Add(-time.Hour)}
	x.judgeParallel([]pgtest.Bounded{one}, now)
	x.judgeParallel([]pgtest.Bounded{next}, now.Add(2*time.Second))
	require.False(t, x.wronged(), "one after the other")

	first := next
	first.Attempt, first.Host = "a", "host-1"

	for name, c := range map[string]struct {
		edit    func(*chaos, *pgtest.Bounded)
		wronged bool
	}{
		"two at once":                 {func(*chaos, *pgtest.Bounded) {}, true},
		"two at once are allowed":     {func(_ *chaos, b *pgtest.Bounded) { b.MaxParallel = 2 }, false},
		"at once with another sweep":  {func(_ *chaos, b *pgtest.Bounded) { b.Sweep = "other" }, false},
		"at once with one given back": {func(_ *chaos, b *pgtest.Bounded) { b.PlacedAt = now.Add(-time.Minute) }, false},
		"on hosts that come back": {func(x *chaos, _ *pgtest.Bounded) {
			x.recovered("host-1")
			x.recovered("host-2")
		}, false},
		"at once with one on a broken host": {func(x *chaos, b *pgtest.Bounded) {
			x.broke("host-1") // which gave up its attempt, and has it back
			b.PlacedAt = now.Add(1500 * time.Millisecond)
		}, false},
		"at once in a restored database": {func(x *chaos, _ *pgtest.Bounded) { x.graced = now.Add(time.Hour) }, false},
	} {
		x, a, b := judging(t), first, next
		x.healthy = map[string]time.Time{"host-1": now.Add(-time.Hour), "host-2": now.Add(-time.Hour)}
		c.edit(x, &b)
		a.MaxParallel = b.MaxParallel

		x.judgeParallel(nil, now)
		x.judgeParallel([]pgtest.Bounded{a, b}, now.Add(2*time.Second))
		require.Equal(t, c.wronged, x.wronged(), "%s: %v", name, x.broken)
	}
}

// A sweep that fails as its job declares is not wronged by an empty Temporal;
// one that was to succeed is, and so is one that is canceled. The same goes for
// the trials of a sweep that goes on.
func TestChaosJudge_AnEmptyTemporalWrongsOnlyWhatEndsOtherwise(t *testing.T) {
	t.Parallel()

	const (
		open     = `"state": "running"`
		declared = `"state": "failed", "failure_kind": "no_result", "finished_at": "2026-01-01T00:00:00Z"`
		canceled = `"state": "canceled", "failure_kind": "canceled", "finished_at": "2026-01-01T00:00:00Z"`
	)

	for name, c := range map[string]struct {
		job, state, trial string
		deeds             deeds
		wronged           bool
	}{
		"failed as declared":            {"silent", "failed", declared, deeds{}, false},
		"failed against expectation":    {"steady", "failed", declared, deeds{}, true},
		"canceled":                      {"silent", "canceled", declared, deeds{}, true},
		"goes on":                       {"silent", "running", open, deeds{}, false},
		"goes on, a trial failed":       {"silent", "running", declared, deeds{}, false},
		"goes on, a trial was canceled": {"silent", "running", canceled, deeds{}, true},
		"goes on, a trial was ended":    {"silent", "running", canceled, deeds{TrialsEnded: map[int]bool{1: true}}, false},
		"stopped by a person":           {"silent", "running", canceled, deeds{Stopped: true}, false},
	} {
		x := judging(t, func(w http.ResponseWriter, r *http.Request) {
			body := `{"id": "x", "name": "x", "state": "` + c.state + `"}`

			switch {
			case strings.HasSuffix(r.URL.Path, "/attempts"):
				body = `{"data": []}`
			case strings.HasSuffix(r.URL.Path, "/trials"):
				body = `{"data": [{"id": "t", "number": 1, ` + c.trial + `, "params": {"ms": 200}}]}`
			}

			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		})
		o := &ordered{id: "x", order: order{Job: c.job, Times: []int{200}}, deeds: c.deeds}

		x.unharmed(map[*ordered]client.SweepState{o: client.SweepStateRunning}, nil)
		require.Equal(t, c.wronged, x.wronged(), "%s: %v", name, x.broken)
	}
}
