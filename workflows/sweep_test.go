package workflows_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// sweepBundle is a sweep's workflow whose steps are faked and whose trials
// take a minute each and end as result says.
type sweepBundle struct {
	env     *testsuite.TestWorkflowEnvironment
	plan    activities.SweepPlan
	total   int   // trials the search has
	holds   int   // attempts that the machines hold
	blocked int   // open trials that wait for a stage
	asked   []int // how many trials the search was asked for
	result  func(number int) berth.TrialEnd
	broken  map[int]error                                   // trials whose workflow ends so
	takes   time.Duration                                   // that a trial runs
	long    map[int]time.Duration                           // trials that run for another time
	looks   int                                             // at the machines, without a suggestion
	deaf    bool                                            // trials run on when they are stopped
	ended   func(in activities.EndedInput) []berth.TrialEnd // how trials ended, as the sweep looks
	again   map[int]int                                     // numbers for which the search once suggests others, that there were

	choose                func() int   // how many trials a search that learns gives at most; nil = as many as asked for
	beginning, suggesting func()       // called in these steps
	finishing             func() error // and in this one

	running, most int // trials open now, and at most
	canceled      int // trials that were asked to end
	started       []int
	states        []activities.SweepStateInput
	finished      activities.SweepStateInput
	settled       []berth.TrialUpdate
}

func sweepSetup(t *testing.T) *sweepBundle {
	t.Helper()

	var a *activities.Activities

	b := &sweepBundle{env: environment(), total: 40, holds: 2, takes: time.Minute, plan: activities.SweepPlan{
		Name: "s", State: berth.SweepRunning, Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize},
	}}
	b.result = func(n int) berth.TrialEnd {
		value := float64(n)

		return berth.TrialEnd{Number: n, State: berth.TrialSucceeded, Value: &value}
	}
	b.env.RegisterActivity(&activities.Activities{})
	b.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.SweepWorkflowID(sweepID)})
	// A mock would say that it has started only when it has ended.
	b.env.RegisterWorkflowWithOptions(b.trial, workflow.RegisterOptions{Name: "TrialWorkflow"})

	b.env.OnActivity(a.BeginSweep, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.SweepRun) (activities.SweepPlan, error) {
			if b.beginning != nil {
				b.beginning()
			}

			return b.plan, nil
		})
	b.env.OnActivity(a.SuggestTrials, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.SuggestInput) (activities.SuggestResult, error) {
			b.asked = append(b.asked, in.Count)

			if b.suggesting != nil {
				b.suggesting()
			}

			r := activities.SuggestResult{Room: activities.Room{Capacity: b.holds, Blocked: b.blocked}}
			again := len(b.again)

			if b.choose != nil {
				most := b.choose()
				r.Later, in.Count = most < in.Count, min(most, in.Count)
			}

			for n := in.First; n < in.First+in.Count && n <= b.total; n++ {
				r.Numbers = append(r.Numbers, cmp.Or(b.again[n], n))
				delete(b.again, n)
			}

			r.Exhausted = len(r.Numbers) < in.Count && len(b.again) == again

			return r, nil
		}).Maybe()
	b.env.OnActivity(a.Capacity, mock.Anything, mock.Anything).Return(func(context.Context, activities.SweepRef) (activities.Room, error) {
		b.looks++

		return activities.Room{Capacity: b.holds, Blocked: b.blocked}, nil
	}).Maybe()
	b.env.OnActivity(a.SetSweepState, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.SweepStateInput) error {
			b.states = append(b.states, in)

			return nil
		}).Maybe()
	b.env.OnActivity(a.EndedTrials, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.EndedInput) ([]berth.TrialEnd, error) {
			if b.ended == nil {
				return nil, nil
			}

			return b.ended(in), nil
		}).Maybe()
	b.env.OnActivity(a.SettleTrial, mock.Anything, mock.Anything).Return(func(_ context.Context, u berth.TrialUpdate) error {
		b.settled = append(b.settled, u)

		return nil
	}).Maybe()
	b.env.OnActivity(a.SetMaxParallel, mock.Anything, mock.Anything).Return(nil).Maybe()
	b.env.OnActivity(a.FinishSweep, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.SweepStateInput) (berth.Sweep, error) {
			if b.finishing != nil {
				if err := b.finishing(); err != nil {
					return berth.Sweep{}, err
				}
			}

			b.finished = in

			return berth.Sweep{State: in.State, Reason: in.Reason}, nil
		}).Maybe()

	return b
}

// trial stands for TrialWorkflow: a minute of work, or an early end.
func (b *sweepBundle) trial(ctx workflow.Context, in workflows.TrialInput) (workflows.TrialResult, error) {
	b.started = append(b.started, in.Number)

	if err := b.broken[in.Number]; err != nil {
		return workflows.TrialResult{}, err
	}

	b.running++
	b.most = max(b.most, b.running)

	stop := workflow.GetSignalChannel(ctx, workflows.SignalStop)

	_, err := workflow.AwaitWithTimeout(ctx, cmp.Or(b.long[in.Number], b.takes), func() bool { return stop.Len() > 0 && !b.deaf })

	b.running--

	if err != nil {
		b.canceled++
	}

	news := b.result(in.Number)
	if err != nil || stop.Len() > 0 {
		news = berth.TrialEnd{Number: in.Number, State: berth.TrialCanceled}
	}

	return workflows.TrialResult{State: news.State, Kind: news.Kind, Value: news.Value}, nil
}

func (b *sweepBundle) execute(t *testing.T) workflows.SweepView {
	t.Helper()

	b.env.ExecuteWorkflow(workflows.SweepWorkflow, workflows.SweepInput{SweepID: sweepID})
	require.True(t, b.env.IsWorkflowCompleted())
	require.NoError(t, b.env.GetWorkflowError())

	var view workflows.SweepView
	require.NoError(t, b.env.GetWorkflowResult(&view))

	return view
}

// carryOn runs the sweep after an earlier run.
func (b *sweepBundle) carryOn(state workflows.CarriedState) error {
	b.env.ExecuteWorkflow(workflows.SweepWorkflow, workflows.SweepInput{SweepID: sweepID, Carried: &state})

	return b.env.GetWorkflowError()
}

// hears tells the sweep of the ends of trials after a time.
func (b *sweepBundle) hears(after time.Duration, ends ...berth.TrialEnd) {
	b.env.RegisterDelayedCallback(func() {
		for _, end := range ends {
			b.env.SignalWorkflow(workflows.SignalTrialFinished, end)
		}
	}, after)
}

func TestSweep_EndsByItsRules(t *testing.T) {
	t.Parallel()

	target := 20.0

	for name, tt := range map[string]struct {
		change func(b *sweepBundle)
		state  berth.SweepState
		reason string
		most   int // trials started
	}{
		"max_trials": {func(b *sweepBundle) { b.plan.MaxTrials = 10 }, berth.SweepSucceeded, "limits.max_trials is reached", 10},
		"target":     {func(b *sweepBundle) { b.plan.Objective.Target = &target }, berth.SweepSucceeded, "reached the target", 40},
		"max_failed_trials": {func(b *sweepBundle) {
			b.plan.MaxFailedTrials = 3
			b.result = func(n int) berth.TrialEnd { return berth.TrialEnd{Number: n, State: berth.TrialFailed} }
		}, berth.SweepFailed, "more than limits.max_failed_trials (3)", 32},
		"infeasible trials do not count as failed": {func(b *sweepBundle) {
			b.plan.MaxFailedTrials = 3
			b.result = ends(strings.Repeat("i", 20) + "s")
		}, berth.SweepSucceeded, "every combination was tried", 40},
		"max_duration": {func(b *sweepBundle) {
			b.plan.MaxDuration = berth.Duration(90 * time.Second)
			b.runsFirst(0)
		}, berth.SweepSucceeded, "limits.max_duration has passed", 32},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			tt.change(b)

			require.Equal(t, tt.state, b.execute(t).State)
			require.Contains(t, b.finished.Reason, tt.reason)
			require.LessOrEqual(t, len(b.started), tt.most)
			require.Zero(t, b.running, "no trial is left behind")
		})
	}
}

// update sends an update and keeps how it went.
func (b *sweepBundle) update(after time.Duration, name string, args ...any) *error {
	var result error

	b.env.RegisterDelayedCallback(func() {
		b.env.UpdateWorkflow(name, name+after.String(), &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { result = err },
			OnComplete: func(_ any, err error) { result = err },
		}, args...)
	}, after)

	return &result
}

func TestSweep_PauseAndResume(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	paused := b.update(30*time.Second, workflows.UpdatePause)
	again := b.update(40*time.Second, workflows.UpdatePause)

	var during int

	b.env.RegisterDelayedCallback(func() { during = len(b.started) }, time.Hour)
	b.hears(time.Hour, berth.TrialEnd{}) // look them up: all that were open have ended

	resumed := b.update(2*time.Hour, workflows.UpdateResume)

	require.Equal(t, berth.SweepSucceeded, b.execute(t).State)
	require.NoError(t, *paused)
	require.NoError(t, *again)
	require.NoError(t, *resumed)
	require.Equal(t, 16, during, "no trial starts while paused")
	require.Len(t, b.started, 40)
	require.Equal(t, 40, b.finished.Created)
	require.Equal(t, berth.SweepPaused, b.states[0].State)
	require.Equal(t, berth.SweepPaused, b.states[1].State)
	require.Equal(t, berth.SweepRunning, b.states[2].State)
}

// A restored database says paused, and the sweep does not know it: a person can
// still resume it.
func TestSweep_ResumesWhatARestoredDatabasePaused(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	resumed := b.update(30*time.Second, workflows.UpdateResume)

	require.Equal(t, berth.SweepSucceeded, b.execute(t).State)
	require.NoError(t, *resumed)
	require.Equal(t, []activities.SweepStateInput{{SweepID: sweepID, State: berth.SweepRunning}}, b.states)
}

// A stopped sweep starts no trials, and is not resumed.
func TestSweep_RefusesToResumeWhatEnds(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	stopped := b.update(30*time.Second, workflows.UpdateStop)
	resumed := b.update(31*time.Second, workflows.UpdateResume)

	b.result = func(n int) berth.TrialEnd { return berth.TrialEnd{Number: n, State: berth.TrialSucceeded} }
	b.deaf = true // trials run on
	require.Equal(t, berth.SweepStopped, b.execute(t).State)
	require.NoError(t, *stopped)
	require.ErrorContains(t, *resumed, "cannot resume: the sweep is ending (stopped by a person)")
	require.Len(t, b.started, 16)
}

// The machines hold 20 attempts, so 40 trials are open. One at a time leaves the
// least window, and no limit opens it again.
func TestSweep_MaxParallelChangesTheWindow(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.holds, b.total = 20, 80
	refused := b.update(10*time.Second, workflows.UpdateSetMaxParallel, -1)
	narrowed := b.update(20*time.Second, workflows.UpdateSetMaxParallel, 1)
	widened := b.update(100*time.Second, workflows.UpdateSetMaxParallel, 0)

	var open []int

	for _, at := range []time.Duration{15 * time.Second, 90 * time.Second, 110 * time.Second} {
		b.env.RegisterDelayedCallback(func() { open = append(open, b.running) }, at)
	}

	require.Zero(t, b.execute(t).MaxParallel)
	require.ErrorContains(t, *refused, "must be 0")
	require.NoError(t, *narrowed)
	require.NoError(t, *widened)
	require.Equal(t, []int{40, 16, 40}, open)
	require.Len(t, b.started, 80)
}

// Trials that may have a place start at once; trials that only wait for one
// start a moment later, when the first have been placed. The same holds when
// trials end.
func TestSweep_StartsAheadWhenNothingIsMoreUrgent(t *testing.T) {
	t.Parallel()

	const takes, moment = 10 * time.Second, 400 * time.Millisecond

	b := sweepSetup(t)
	b.holds, b.total, b.takes = 20, 80, takes

	began, asked := b.env.Now(), make(map[time.Duration]int)
	b.suggesting = func() { asked[b.env.Now().Sub(began)] += b.asked[len(b.asked)-1] }

	b.execute(t)
	require.Equal(t, 24, asked[0], "20 places, eight at a time")
	require.Equal(t, 16, asked[moment], "as many as can run wait")
	require.Equal(t, 8, asked[takes], "24 have ended, and 16 wait for the 20 places")
	require.LessOrEqual(t, slices.Max(b.asked), 8, "many at once keep each other from starting, in Temporal")
	require.Len(t, b.started, 80)
}

// A host is away for a minute, and trials end in it: the window, narrow for
// that, opens again when the host is back, however long other trials run.
func TestSweep_OneBadLookAtTheHostsDoesNotLast(t *testing.T) {
	t.Parallel()

	const (
		bad    = 10 * time.Minute // when most trials end
		window = 120
		long   = 60
	)

	for name, tt := range map[string]struct {
		next  time.Duration // when another one ends
		check time.Duration
	}{
		"when a trial ends":       {2 * time.Minute, 3 * time.Minute},
		"when none does for long": {10 * time.Hour, 8 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.holds, b.total, b.takes = window/2, 200, bad

			b.long = map[int]time.Duration{long: bad + tt.next}
			for n := 1; n < long; n++ {
				b.long[n] = 10 * time.Hour
			}

			b.env.RegisterDelayedCallback(func() { b.holds = 2 }, bad-time.Second)
			b.env.RegisterDelayedCallback(func() { b.holds = window / 2 }, bad+time.Minute)

			var before, after int

			b.env.RegisterDelayedCallback(func() { before = b.running }, bad+time.Minute)
			b.env.RegisterDelayedCallback(func() { after = b.running }, bad+tt.check)

			b.execute(t)
			require.Less(t, before, window, "the moment was bad")
			require.Equal(t, window, after)
		})
	}
}

// A sweep that its own max_parallel keeps narrow does not ask about the hosts.
// Once its startup points are out, a search that learns has few more trials open than the
// machines hold.
func TestSweep_ChoosesLateWhenItsSearchLearns(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.plan.Learns, b.plan.Startup = true, 18
	b.holds, b.total = 10, 60

	var open []int

	for _, at := range []time.Duration{30 * time.Second, 150 * time.Second} {
		b.env.RegisterDelayedCallback(func() { open = append(open, b.running) }, at)
	}

	b.execute(t)
	require.Equal(t, []int{20, 12}, open)
	require.Len(t, b.started, 60)
}

// Trials that wait for a stage do not narrow the window: others start in the free places. The
// sweep looks for them from time to time, as no trial ends in that time.
func TestSweep_TrialsThatWaitForAStageDoNotNarrowTheWindow(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.plan.Staged = true
	b.holds, b.total, b.takes = 2, 60, time.Hour

	var open []int

	b.env.RegisterDelayedCallback(func() { open, b.blocked = append(open, b.running), 15 }, 30*time.Second)
	b.env.RegisterDelayedCallback(func() { open, b.blocked = append(open, b.running), 0 }, 3*time.Minute)
	b.env.RegisterDelayedCallback(func() { open = append(open, b.running) }, 10*time.Minute)

	b.execute(t)
	require.Equal(t, []int{16, 31, 31}, open)
	require.Len(t, b.started, 60)
}

// While enough trials wait, the search is asked again after half a second, then twice as
// long each time: other sweeps' ends give them places, of which no event tells this one. An
// end of its own counts at once.
func TestSweep_AsksASearchThatLearnsAgain(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.plan.Learns, b.plan.Startup = true, 2
	b.holds, b.total, b.takes = 100, 8, 10*time.Minute
	b.long = map[int]time.Duration{1: 20 * time.Second}

	var asks []time.Duration

	began, give := b.env.Now(), 2
	b.choose = func() int {
		asks = append(asks, b.env.Now().Sub(began).Round(100*time.Millisecond))

		if b.env.Now().Sub(began) > 5*time.Minute {
			give = 8
		}

		most := give
		give = 0

		return most
	}

	b.execute(t)
	require.Len(t, b.started, 8)

	half := 500 * time.Millisecond
	require.Equal(t, []time.Duration{0, half, 3 * half, 7 * half, 15 * half, 31 * half, 20 * time.Second, 20*time.Second + half}, asks[:8])
}

func TestSweep_LooksAtTheHostsOnlyForAWiderWindow(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.holds, b.plan.MaxParallel, b.takes = 60, 10, time.Hour

	b.execute(t)
	require.Zero(t, b.looks)
}

// A canceled sweep cancels its open trials, whenever that is: also in the moment in which
// it begins, and trials that are stored meanwhile, which no other code would end.
func TestSweep_CancelEndsAllTrials(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		cancel func(b *sweepBundle)
		trials int
	}{
		"while it runs":     {func(b *sweepBundle) { b.env.RegisterDelayedCallback(b.env.CancelWorkflow, 30*time.Second) }, 16},
		"while it begins":   {func(b *sweepBundle) { b.beginning = b.env.CancelWorkflow }, 0},
		"while it suggests": {func(b *sweepBundle) { b.total, b.suggesting = 3, b.env.CancelWorkflow }, 3},
	} {
		b := sweepSetup(t)
		tt.cancel(b)
		require.Equal(t, berth.SweepCanceled, b.execute(t).State, name)
		require.Equal(t, berth.SweepCanceled, b.finished.State, name)
		require.Equal(t, berth.SweepCanceling, b.states[0].State, name)
		require.Len(t, b.started, tt.trials, name)
		require.Equal(t, tt.trials, b.canceled, name)
		require.Zero(t, b.running, name)
	}
}

func TestSweep_ContinuesAsNewAndForgetsNothing(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.env.RegisterDelayedCallback(func() { b.env.SetContinueAsNewSuggested(true) }, 30*time.Second)
	b.env.ExecuteWorkflow(workflows.SweepWorkflow, workflows.SweepInput{SweepID: sweepID})

	in := decodeNext[workflows.SweepInput](t, b.env.GetWorkflowError())
	require.NotNil(t, in.Carried)
	require.GreaterOrEqual(t, in.Carried.Created, 16)
	require.Equal(t, in.Carried.Created, in.Carried.Succeeded+len(in.Carried.Open))
}

// Temporal passes a cancellation on to no later run: the run that gets it
// carries it out, also in the step in which it would continue as new.
func TestSweep_CanceledWhileItContinuesAsNew(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.total = 3
	b.suggesting = func() {
		b.env.SetContinueAsNewSuggested(true)
		b.env.CancelWorkflow()
	}
	b.env.ExecuteWorkflow(workflows.SweepWorkflow, workflows.SweepInput{SweepID: sweepID})

	// The run that ends the trials may continue as new while it waits for them.
	require.ErrorContains(t, b.env.GetWorkflowError(), "continue as new")
	require.Equal(t, berth.SweepCanceled, decodeNext[workflows.SweepInput](t, b.env.GetWorkflowError()).Carried.Ending.State)
	require.Equal(t, berth.SweepCanceling, b.states[0].State)
}

// A run that continues as new before its requests have reached the trials drops
// them, and the trials would go on for ever.
func TestSweep_ContinuesAsNewOnceItsTrialsHaveHeard(t *testing.T) {
	t.Parallel()

	const slow = 10 * time.Second

	for name, end := range map[string]func(b *sweepBundle){
		"stop":   func(b *sweepBundle) { b.update(30*time.Second, workflows.UpdateStop) },
		"cancel": func(b *sweepBundle) { b.env.RegisterDelayedCallback(b.env.CancelWorkflow, 30*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, workflows.SignalStop, mock.Anything).
				After(slow).Return(nil)
			b.env.OnRequestCancelExternalWorkflow(mock.Anything, mock.Anything, mock.Anything).After(slow).Return(nil)

			var asked time.Time

			b.env.RegisterDelayedCallback(func() {
				b.env.SetContinueAsNewSuggested(true)

				asked = b.env.Now()
			}, 30*time.Second)
			end(b)

			next := decodeNext[workflows.SweepInput](t, b.carryOn(workflows.CarriedState{Created: 2, Open: []int{1, 2}, Exhausted: true}))
			require.Equal(t, []int{1, 2}, next.Carried.Open)
			require.GreaterOrEqual(t, b.env.Now().Sub(asked), slow)
		})
	}
}

func TestSweep_SettlesTrialsWhoseWorkflowsBroke(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		err   error
		state berth.TrialState
	}{
		"failed":     {temporal.NewApplicationError("broken", "broken"), berth.TrialFailed},
		"canceled":   {temporal.NewCanceledError(), berth.TrialCanceled},
		"terminated": {&temporal.TerminatedError{}, berth.TrialCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.total = 3
			b.broken = map[int]error{2: tt.err}

			require.Equal(t, berth.SweepSucceeded, b.execute(t).State)
			require.Len(t, b.settled, 1)
			require.Equal(t, 2, b.settled[0].Number)
			require.Equal(t, tt.state, b.settled[0].State)
		})
	}
}

// A run takes over the trials of an earlier one: trials that ended between the
// two, by the database; trials that end later, by signals; trials that a person
// ended, by looking.
func TestSweep_TakesOverTheTrialsOfAnEarlierRun(t *testing.T) {
	t.Parallel()

	var looks []activities.EndedInput

	b := sweepSetup(t)
	b.total = 0
	b.ended = func(in activities.EndedInput) []berth.TrialEnd {
		looks = append(looks, in)
		if !in.Closed {
			return []berth.TrialEnd{{Number: 1, State: berth.TrialSucceeded, Value: new(0.5)}}
		}

		return []berth.TrialEnd{{Number: 3, State: berth.TrialCanceled}}
	}
	b.hears(time.Minute, berth.TrialEnd{Number: 2, State: berth.TrialSucceeded, Value: new(0.7)},
		berth.TrialEnd{Number: 1, State: berth.TrialFailed}) // late; 1 is counted

	require.NoError(t, b.carryOn(workflows.CarriedState{Created: 3, Open: []int{1, 2, 3}, Exhausted: true}))
	require.Empty(t, b.started)
	require.Equal(t, []activities.EndedInput{
		{SweepID: sweepID, Numbers: []int{1, 2, 3}},
		{SweepID: sweepID, Numbers: []int{3}, Closed: true},
	}, looks)
}

// Ends that arrive together keep their own values: the second does not get the
// first one's.
func TestSweep_EndsThatAreHeardTogether(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.plan.Objective.Target = new(0.9)
	b.beginning = func() {
		b.hears(0, berth.TrialEnd{Number: 1, State: berth.TrialSucceeded, Value: new(0.95)},
			berth.TrialEnd{Number: 2, State: berth.TrialSucceeded, Value: new(0.2)},
			berth.TrialEnd{Number: 3, State: berth.TrialFailed, Kind: berth.FailureInfra})
	}

	require.NoError(t, b.carryOn(workflows.CarriedState{Created: 3, Open: []int{1, 2, 3}, Exhausted: true}))
	require.Equal(t, "trial 1 reached the target: 0.95", b.finished.Reason)
}

// A sweep that the database followed to a later run looks up its trials at once,
// not after minutes; one without open trials has nothing to look up, and goes
// on.
func TestSweep_LooksUpTrialsWhenItIsTold(t *testing.T) {
	t.Parallel()

	var after time.Duration

	b := sweepSetup(t)
	b.total = 0
	began := b.env.Now()
	b.ended = func(in activities.EndedInput) []berth.TrialEnd {
		require.Equal(t, []int{4}, in.Numbers)

		if !in.Closed {
			return nil
		}

		after = b.env.Now().Sub(began)

		return []berth.TrialEnd{{Number: 4, State: berth.TrialSucceeded, Value: new(0.5)}}
	}
	b.hears(time.Second, berth.TrialEnd{})

	require.NoError(t, b.carryOn(workflows.CarriedState{Created: 4, Open: []int{4}, Exhausted: true}))
	require.Equal(t, time.Second, after)
	require.Equal(t, berth.SweepSucceeded, b.finished.State)
}

// A person ends the workflow of a trial that an earlier run started, while other
// trials bring news every minute: the sweep still looks it up, and does not ask
// about trials that this run started.
func TestSweep_LooksUpTrialsOfEarlierRunsWhileNewsCome(t *testing.T) {
	t.Parallel()

	var after time.Duration

	b := sweepSetup(t)
	b.total, b.plan.MaxParallel = 1000, 1
	began := b.env.Now()
	b.ended = func(in activities.EndedInput) []berth.TrialEnd {
		require.Equal(t, []int{1}, in.Numbers)

		if !in.Closed {
			return nil
		}

		after = b.env.Now().Sub(began)

		return []berth.TrialEnd{{Number: 1, State: berth.TrialCanceled}}
	}

	_ = b.carryOn(workflows.CarriedState{Created: 1, Open: []int{1}})

	require.True(t, b.env.IsWorkflowCompleted())
	require.NotZero(t, after, "trial 1 was not looked up")
	require.Less(t, after, 10*time.Minute)
}

// A restored database suggests a trial again that Temporal knows to have ended:
// the sweep asks at once how it ended.
func TestSweep_AsksAboutTrialsThatWereThere(t *testing.T) {
	t.Parallel()

	asked := 0

	b := sweepSetup(t)
	b.total, b.holds = 17, 2 // trial 17 when one of the first 16 has ended
	b.ended = func(in activities.EndedInput) []berth.TrialEnd {
		require.Equal(t, activities.EndedInput{SweepID: sweepID, Numbers: []int{1}, Closed: true}, in)

		asked++

		return []berth.TrialEnd{{Number: 1, State: berth.TrialSucceeded}}
	}
	b.again = map[int]int{17: 1}

	began := b.env.Now()

	require.Equal(t, berth.SweepSucceeded, b.execute(t).State)
	require.Less(t, b.env.Now().Sub(began), 4*time.Minute)
	require.Len(t, b.started, 17)
	require.Equal(t, 1, asked)
}

// The search reports its end only when it is asked for more trials than it has.
// When every trial has ended by then, the sweep ends at once.
func TestSweep_EndsWhenAllEndedBeforeTheSearchSaidSo(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.total = 2
	b.ended = func(activities.EndedInput) []berth.TrialEnd {
		return []berth.TrialEnd{{Number: 1, State: berth.TrialSucceeded}, {Number: 2, State: berth.TrialSucceeded}}
	}

	began := b.env.Now()

	require.NoError(t, b.carryOn(workflows.CarriedState{Created: 2, Open: []int{1, 2}}))
	require.Equal(t, berth.SweepSucceeded, b.finished.State)
	require.Less(t, b.env.Now().Sub(began), time.Minute, "it waited for news that could not come")
}

// A sweep that is canceled while its end is being written has ended well.
func TestSweep_CanceledWhileItFinishes(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	b.total = 3

	tries := 0
	b.finishing = func() error {
		if tries++; tries > 1 {
			return nil
		}

		b.env.CancelWorkflow()

		return temporal.NewApplicationError("the database is not there", string(berth.KindUnavailable))
	}

	require.Equal(t, berth.SweepSucceeded, b.execute(t).State)
	require.Equal(t, berth.SweepSucceeded, b.finished.State)
	require.Empty(t, b.states, "nothing is canceled")
}
