package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

const (
	sweepID  = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	shapeKey = "0123456789abcdef"
	mib      = 1 << 20
)

// trialBundle is a trial's workflow with every step faked. Tests replace the
// steps under test.
type trialBundle struct {
	env   *testsuite.TestWorkflowEnvironment
	brief activities.TrialBrief

	waiting bool   // requests wait instead of being placed at once
	ran     func() // is called as an attempt ends; nil = nothing

	requests []activities.PlaceInput
	settled  berth.TrialUpdate
	measured []workflows.ProbeMeasured
}

func trialSetup(t *testing.T) *trialBundle {
	t.Helper()

	var a *activities.Activities

	b := &trialBundle{env: environment(), brief: activities.TrialBrief{
		TrialID: "trial", Values: "lr=0.1", ShapeKey: shapeKey, MaxAttempts: 3,
		ProbeMode: berth.ProbeFull, MaxDuration: berth.Duration(time.Hour), Heartbeat: berth.Duration(time.Minute),
		HostPatience: berth.Duration(2 * time.Minute), ProbeMaxDuration: berth.Duration(2 * time.Minute),
	}}
	b.env.RegisterActivity(&activities.Activities{})
	b.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.TrialWorkflowID(sweepID, 1)})

	b.env.OnActivity(a.BeginTrial, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.TrialRef) (activities.TrialBrief, error) { return b.brief, nil }).Maybe()
	b.env.OnActivity(a.RequestPlacement, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
			b.requests = append(b.requests, in)
			asked := berth.Demand{MemoryBytes: 512 * mib, CPUMilli: 1000}
			if in.Last != nil {
				asked.MemoryBytes = in.Last.Demand.MemoryBytes * 2
			}

			state := berth.RequestPlaced
			if b.waiting {
				state = berth.RequestWaiting
			}

			return activities.PlaceResult{Asked: asked, Status: b.status(in.AttemptID, state, asked)}, nil
		}).Maybe()
	b.env.OnActivity(a.SettleTrial, mock.Anything, mock.Anything).Return(
		func(_ context.Context, u berth.TrialUpdate) error {
			b.settled = u

			return nil
		}).Maybe()
	b.env.OnSignalExternalWorkflow(mock.Anything, workflows.ProbeWorkflowID(shapeKey), mock.Anything,
		workflows.SignalMeasured, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
		b.measured = append(b.measured, arg.(workflows.ProbeMeasured)) //nolint:forcetypeassert // our own signal

		return nil
	}).Maybe()

	return b
}

func (b *trialBundle) status(attempt string, state berth.RequestState, d berth.Demand) berth.PlacementStatus {
	return berth.PlacementStatus{AttemptID: attempt, State: state, HostID: "h", HostName: "host", Token: 7, Demand: d}
}

// runs makes the attempts end with these outcomes, one after the other.
func (b *trialBundle) runs(outcomes ...berth.Outcome) {
	var a *activities.Activities

	n := 0
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.Order) (berth.Outcome, error) {
			o := outcomes[min(n, len(outcomes)-1)]
			n++

			if b.ran != nil {
				b.ran()
			}

			if o.Kind == berth.FailureOK {
				return o, nil
			}

			return o, temporal.NewApplicationErrorWithOptions(o.Message, string(o.Kind),
				temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{o}})
		})
}

func (b *trialBundle) execute(t *testing.T) workflows.TrialResult {
	t.Helper()

	b.env.ExecuteWorkflow(workflows.TrialWorkflow, workflows.TrialInput{SweepID: sweepID, Number: 1})
	require.True(t, b.env.IsWorkflowCompleted())
	require.NoError(t, b.env.GetWorkflowError())

	var result workflows.TrialResult
	require.NoError(t, b.env.GetWorkflowResult(&result))

	return result
}

func ok(value float64) berth.Outcome {
	return berth.Outcome{Kind: berth.FailureOK, Message: "finished", Value: &value}
}

func bad(kind berth.FailureKind) berth.Outcome {
	return berth.Outcome{Kind: kind, Message: string(kind), Usage: berth.Usage{MemoryPeakBytes: 500 * mib}}
}

func TestTrial_SucceedsAtOnce(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.runs(ok(0.9))

	result := b.execute(t)
	require.Equal(t, berth.TrialSucceeded, result.State)
	require.InDelta(t, 0.9, *result.Value, 0)
	require.Equal(t, berth.TrialSucceeded, b.settled.State)
	require.Len(t, b.requests, 1)
	require.Equal(t, berth.PurposeRun, b.requests[0].Purpose)
	require.Equal(t, workflows.AttemptID(workflows.TrialWorkflowID(sweepID, 1), 1), b.requests[0].AttemptID)
}

func TestTrial_GrowsAfterOutOfMemory(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.runs(bad(berth.FailureHostOOM), ok(0.9))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, b.requests, 2)
	require.Nil(t, b.requests[0].Last)
	require.Equal(t, &berth.LastOOM{
		Demand: berth.Demand{MemoryBytes: 512 * mib, CPUMilli: 1000}, PeakBytes: 500 * mib, Count: 1, Max: 3,
	}, b.requests[1].Last)
	require.NotEqual(t, b.requests[0].AttemptID, b.requests[1].AttemptID)
}

func TestTrial_EndsAccordingToKind(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name     string
		kinds    []berth.FailureKind // the last repeats
		want     berth.TrialState
		kind     berth.FailureKind
		attempts int
	}{
		{"user error is not repeated", []berth.FailureKind{berth.FailureUserError}, berth.TrialFailed, berth.FailureUserError, 1},
		{"bad command is not repeated", []berth.FailureKind{berth.FailureBadCommand}, berth.TrialFailed, berth.FailureBadCommand, 1},
		{"missing result is not repeated", []berth.FailureKind{berth.FailureNoResult}, berth.TrialFailed, berth.FailureNoResult, 1},
		{"crash is repeated until attempts are used up", []berth.FailureKind{berth.FailureCrashed}, berth.TrialFailed, berth.FailureCrashed, 3},
		{"out of memory for ever is infeasible", []berth.FailureKind{berth.FailureHostOOM}, berth.TrialInfeasible, berth.FailureTooBig, 3},
		{"infrastructure is free, but not for ever", []berth.FailureKind{berth.FailureInfra}, berth.TrialFailed, berth.FailureInfra, 10},
		{
			"infrastructure does not use up attempts",
			[]berth.FailureKind{berth.FailureInfra, berth.FailureInfra, berth.FailureCrashed},
			berth.TrialFailed, berth.FailureCrashed, 5,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := trialSetup(t)

			outcomes := make([]berth.Outcome, len(tt.kinds))
			for i, kind := range tt.kinds {
				outcomes[i] = bad(kind)
			}

			b.runs(outcomes...)

			result := b.execute(t)
			require.Equal(t, tt.want, result.State)
			require.Equal(t, tt.attempts, result.Attempts)
			require.Equal(t, tt.kind, b.settled.Kind)
			require.NotEmpty(t, b.settled.Message)
		})
	}
}

// The failure of a trial that is too large for any GPU names the key that lets it
// spill; with that key set, it names what else would help.
func TestTrial_TooLargeForAnyGPU(t *testing.T) {
	t.Parallel()

	for spills, says := range map[bool]string{
		false: "use a GPU with more memory, or resources.gpu_memory_spill",
		true:  "use a GPU with more memory, or more attempts (retry.max_attempts)",
	} {
		b := trialSetup(t)
		b.brief.Spills = spills
		b.runs(bad(berth.FailureDeviceOOM))

		require.Equal(t, berth.TrialInfeasible, b.execute(t).State)
		require.Contains(t, b.settled.Message, says)
	}
}

func TestTrial_LostHostIsFencedAndReplaced(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	n := 0
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.Order) (berth.Outcome, error) {
			if n++; n == 1 {
				return berth.Outcome{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
			}

			return ok(0.5), nil
		})

	var abandoned activities.AbandonInput

	b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.AbandonInput) (activities.Abandoned, error) {
			abandoned = in

			return activities.Abandoned{}, nil
		}).Once()

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, b.requests[0].AttemptID, abandoned.AttemptID)
	require.Len(t, b.requests, 2)
}

// A host cut off from Temporal alone commits its results.
func TestTrial_LostHostThatHadCommittedKeepsItsResult(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		berth.Outcome{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)).Once()

	finished := ok(0.5)
	b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(activities.Abandoned{Finished: &finished}, nil).Once()

	result := b.execute(t)
	require.Equal(t, berth.TrialSucceeded, result.State)
	require.Equal(t, 0.5, *result.Value) //nolint:testifylint // the very same
	require.Len(t, b.requests, 1, "nothing is repeated")
}

func TestTrial_WaitsForTheSignalAndLooksAnyway(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		signal bool
	}{{"signaled", true}, {"signal lost", false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.waiting = true
			b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).
				Return(b.status("x", berth.RequestPlaced, berth.Demand{MemoryBytes: mib}), nil).Once()
			b.runs(ok(1))

			if tt.signal {
				b.env.RegisterDelayedCallback(func() {
					b.env.SignalWorkflow(workflows.SignalPlaced, workflows.Placed{AttemptID: "x"})
				}, time.Second)
			}

			start := b.env.Now()
			require.Equal(t, berth.TrialSucceeded, b.execute(t).State)

			waited := b.env.Now().Sub(start)
			if tt.signal {
				require.Less(t, waited, 10*time.Second)
			} else {
				require.GreaterOrEqual(t, waited, 30*time.Second)
			}
		})
	}
}

// eventsOfALook is the history of one poll by a waiting trial: a timer starts and
// fires, a task is scheduled, started and completed, and a marker.
const eventsOfALook = 6

// A trial that waits for months, for a paused sweep or a lost host, goes on run by run:
// Temporal ends a workflow at 51,200 events.
func TestTrial_WaitsForNinetyDays(t *testing.T) {
	t.Parallel()

	for name, probes := range map[string]bool{"for a place": false, "for its probe, then for a place": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const wait = 90 * 24 * time.Hour

			in := workflows.TrialInput{SweepID: sweepID, Number: 1}

			var waited time.Duration

			for runs := 1; ; runs++ {
				var a *activities.Activities

				b := trialSetup(t)
				b.waiting, b.brief.NeedsProbe = true, probes
				start := b.env.Now()
				events := 0
				look := func(after time.Duration) bool {
					events += eventsOfALook
					b.env.SetCurrentHistoryLength(events)

					return waited+b.env.Now().Sub(start) >= after
				}

				b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil).Maybe()
				b.env.OnActivity(a.FootprintKnown, mock.Anything, mock.Anything).Return(
					func(context.Context, activities.ShapeRef) (bool, error) { return look(wait / 2), nil }).Maybe()
				b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(
					func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) {
						state := berth.RequestWaiting
						if look(wait) {
							state = berth.RequestPlaced
						}

						return b.status(ref.AttemptID, state, berth.Demand{MemoryBytes: mib}), nil
					}).Maybe()
				b.runs(ok(0.9))
				b.env.ExecuteWorkflow(workflows.TrialWorkflow, in)
				require.True(t, b.env.IsWorkflowCompleted())
				require.Less(t, events, 4096, "where Temporal suggests another run")

				for _, request := range b.requests {
					require.Equal(t, workflows.AttemptID(workflows.TrialWorkflowID(sweepID, 1), 1), request.AttemptID, "one request for all runs")
				}

				waited += b.env.Now().Sub(start)

				if err := b.env.GetWorkflowError(); workflow.IsContinueAsNewError(err) {
					in = decodeNextTrial(t, err)

					continue
				}

				require.NoError(t, b.env.GetWorkflowError())
				require.Equal(t, berth.TrialSucceeded, b.settled.State)
				require.GreaterOrEqual(t, waited, wait)
				require.Greater(t, runs, 30)

				return
			}
		})
	}
}

func decodeNextTrial(t *testing.T, err error) (in workflows.TrialInput) {
	t.Helper()

	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))

	return in
}

// The next run knows the trial's counts, and gets the signals that this one did
// not read.
func TestTrial_TheNextRunCountsOn(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.runs(bad(berth.FailureHostOOM))
	b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(
		func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) {
			b.env.SetContinueAsNewSuggested(true)

			return b.status(ref.AttemptID, berth.RequestWaiting, berth.Demand{}), nil
		})
	b.ran = func() { b.waiting = true }
	b.env.ExecuteWorkflow(workflows.TrialWorkflow, workflows.TrialInput{SweepID: sweepID, Number: 1})

	in := decodeNextTrial(t, b.env.GetWorkflowError())
	require.Equal(t, 1, in.Carried.OOMs)
	require.Empty(t, b.settled.State)

	next := trialSetup(t)
	next.runs(bad(berth.FailureHostOOM))
	next.env.ExecuteWorkflow(workflows.TrialWorkflow, in)
	require.NoError(t, next.env.GetWorkflowError())
	require.Equal(t, berth.TrialInfeasible, next.settled.State)
	require.Len(t, next.requests, 2, "of three attempts")
	require.Equal(t, b.requests[1].AttemptID, next.requests[0].AttemptID)
	require.Equal(t, b.requests[1].Last, next.requests[0].Last)
}

// A stop or a cancellation that comes with the look after which a run would end is this run's.
func TestTrial_HearsItsEndBeforeTheNextRun(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(b *trialBundle){
		"stop":   func(b *trialBundle) { b.env.SignalWorkflow(workflows.SignalStop, nil) },
		"cancel": func(b *trialBundle) { b.env.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.waiting = true
			b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(
				func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) {
					b.env.SetContinueAsNewSuggested(true)
					end(b)

					return b.status(ref.AttemptID, berth.RequestWaiting, berth.Demand{}), nil
				}).Maybe()
			b.env.OnActivity(a.WithdrawPlacement, mock.Anything, mock.Anything).Return(b.status("x", berth.RequestWithdrawn, berth.Demand{}), nil)
			b.execute(t)
			require.Equal(t, berth.TrialCanceled, b.settled.State)
		})
	}
}

func TestTrial_StopOrCancelWhileWaiting(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name string
		end  func(env *testsuite.TestWorkflowEnvironment)
	}{
		{"stop", func(env *testsuite.TestWorkflowEnvironment) { env.SignalWorkflow(workflows.SignalStop, nil) }},
		{"cancel", func(env *testsuite.TestWorkflowEnvironment) { env.CancelWorkflow() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.waiting = true
			b.env.OnActivity(a.WithdrawPlacement, mock.Anything, mock.Anything).
				Return(berth.PlacementStatus{State: berth.RequestWithdrawn}, nil).Once()
			b.env.RegisterDelayedCallback(func() { tt.end(b.env) }, time.Second)

			require.Equal(t, berth.TrialCanceled, b.execute(t).State)
			require.Equal(t, berth.TrialCanceled, b.settled.State)
			b.env.AssertExpectations(t)
		})
	}
}

// What became of a canceled attempt is what its host says.
func TestTrial_CanceledSaysWhatBecameOfItsContainer(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	hangs := canceled("canceled; Docker does not answer")

	b := trialSetup(t)
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(berth.Outcome{}, temporal.NewCanceledError(hangs)).Once()

	require.Equal(t, berth.TrialCanceled, b.execute(t).State)
	require.Equal(t, berth.FailureCanceled, b.settled.Kind)
	require.Equal(t, hangs.Message, b.settled.Message)
}

func canceled(message string) berth.Outcome {
	return berth.Outcome{Kind: berth.FailureCanceled, Message: message}
}

// Temporal itself cancels an attempt that no worker has yet. Its host gives the place back
// at once. The trial does not wait for a slow host: the ledger has the attempt's state.
func TestTrial_CanceledBeforeAWorkerHadIt(t *testing.T) {
	t.Parallel()

	var (
		notStarted = []any{"ACTIVITY_ID_NOT_STARTED"}
		away       = temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		fenced     = temporal.NewNonRetryableApplicationError("the attempt is not ours any more", string(berth.KindFenced), nil)
		result     = ok(0.9)
	)

	for name, tt := range map[string]struct {
		details  []any // of the first answer
		made     int   // attempts before, which the host lost
		back     berth.Outcome
		err      error
		finished *berth.Outcome // in the ledger
		state    berth.TrialState
		want     string
	}{
		"its host is there":        {details: notStarted, back: canceled("canceled before it began"), state: berth.TrialCanceled, want: "canceled before it began"},
		"a worker says nothing":    {back: canceled("canceled before it began"), state: berth.TrialCanceled, want: "canceled before it began"},
		"its host is away":         {details: notStarted, err: away, state: berth.TrialCanceled, want: "no worker of it answers"},
		"its host takes too long":  {details: notStarted, err: temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil), state: berth.TrialCanceled, want: "it took too long"},
		"it is fenced":             {details: notStarted, err: fenced, state: berth.TrialCanceled, want: "not ours any more"},
		"it is the last of many":   {details: notStarted, made: berth.MaxFreeRetries - 1, err: fenced, state: berth.TrialCanceled, want: "not ours any more"},
		"it had committed a value": {details: notStarted, err: away, finished: &result, state: berth.TrialSucceeded, want: "finished"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var (
				a      *activities.Activities
				orders []activities.Order
			)

			b := trialSetup(t)
			b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(activities.Abandoned{Finished: tt.finished}, nil)
			b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(func(ctx context.Context, o activities.Order) (berth.Outcome, error) {
				orders = append(orders, o)

				switch {
				case o.Stop:
					require.Equal(t, 2*time.Minute, activity.GetInfo(ctx).ScheduleToCloseTimeout, "a host that answers, and cannot, is not waited for either")

					return tt.back, tt.err
				case len(orders) <= tt.made:
					lost := bad(berth.FailureInfra)

					return lost, temporal.NewApplicationErrorWithOptions(lost.Message, string(lost.Kind), temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{lost}})
				default:
					b.env.CancelWorkflow()

					return berth.Outcome{}, temporal.NewCanceledError(tt.details...)
				}
			})

			require.Equal(t, tt.state, b.execute(t).State)
			require.Contains(t, b.settled.Message, tt.want)
			require.Len(t, orders, tt.made+2)
			require.Len(t, b.requests, tt.made+1)
			require.Equal(t, activities.Order{AttemptID: orders[tt.made].AttemptID, Token: 7, Stop: true}, orders[tt.made+1])
		})
	}
}

// Its host goes away while a trial is canceled that just got a place there.
func TestTrial_CanceledAsItsHostGoesAway(t *testing.T) {
	t.Parallel()

	var (
		a     *activities.Activities
		fence activities.AbandonInput
	)

	b := trialSetup(t)
	b.waiting = true
	b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.AbandonInput) (activities.Abandoned, error) {
		fence = in

		return activities.Abandoned{}, nil
	}).Once()
	b.env.OnActivity(a.WithdrawPlacement, mock.Anything, mock.Anything).Return(func(_ context.Context, r activities.AttemptRef) (berth.PlacementStatus, error) {
		return b.status(r.AttemptID, berth.RequestPlaced, berth.Demand{}), nil
	})
	b.env.RegisterDelayedCallback(b.env.CancelWorkflow, time.Second)
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(func(_ context.Context, o activities.Order) (berth.Outcome, error) {
		require.True(t, o.Stop)

		return berth.Outcome{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}).Once()

	require.Equal(t, berth.TrialCanceled, b.execute(t).State)
	require.Len(t, b.requests, 1)
	require.Contains(t, fence.Message, "no worker of it answers")
}

func TestTrial_CarriesTheProbe(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.brief.NeedsProbe = true
	b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
	b.runs(bad(berth.FailureHostOOM), ok(0.9))
	b.env.RegisterDelayedCallback(func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{})
	}, time.Second)

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, berth.PurposeProbe, b.requests[0].Purpose)
	require.Equal(t, berth.PurposeProbe, b.requests[1].Purpose, "it goes on measuring until it knows")
	require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}, b.measured, "told once")
}

func TestTrial_ShortProbeIsThrownAway(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode = true, berth.ProbeShort
	b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)

	var orders []activities.Order

	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o activities.Order) (berth.Outcome, error) {
			orders = append(orders, o)

			return ok(float64(len(orders))), nil
		})
	b.env.RegisterDelayedCallback(func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{})
	}, time.Second)

	result := b.execute(t)
	require.InDelta(t, 2.0, *result.Value, 0, "the second run's result counts")
	require.True(t, orders[0].Short)
	require.False(t, orders[1].Short)
	require.Len(t, b.measured, 1)
}

func TestTrial_SlowProbeIsCapped(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode = true, berth.ProbeAuto
	b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).After(10*time.Minute).Return(ok(1), nil)
	b.env.RegisterDelayedCallback(func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{})
	}, time.Second)

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, b.measured, 2)
	require.True(t, b.measured[0].Capped, "the others are told not to wait")
	require.False(t, b.measured[1].Capped)
}

// An attempt that its host refuses has no outcome. The ledger takes no second
// live attempt of a trial, so the first is closed before the next one is placed.
func TestTrial_RefusedAttemptIsClosedBeforeTheNext(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	n := 0
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.Order) (berth.Outcome, error) {
			if n++; n == 1 {
				return berth.Outcome{}, temporal.NewNonRetryableApplicationError("container belongs to another launch", string(berth.KindConflict), nil)
			}

			return ok(0.5), nil
		})

	var closed []activities.AbandonInput

	b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.AbandonInput) (activities.Abandoned, error) {
			require.Len(t, b.requests, 1, "closed before the next one asks")

			closed = append(closed, in)

			return activities.Abandoned{}, nil
		})

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, closed, 1)
	require.Equal(t, b.requests[0].AttemptID, closed[0].AttemptID)
	require.True(t, closed[0].Refused, "its host must not get it back")
	require.Equal(t, "host host could not carry the attempt out: container belongs to another launch", closed[0].Message)
}

// A trial of a shape that another one measures asks for a place at once, at the
// unmeasured size, and for the measured size as soon as that is known.
func TestTrial_RunsBesideTheProbe(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.brief.NeedsProbe, b.waiting = true, true
	b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
	b.runs(ok(0.9))

	var resized []activities.PlaceInput

	b.env.OnActivity(a.ResizePlacement, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
			resized = append(resized, in)

			return activities.PlaceResult{Status: b.status(in.AttemptID, berth.RequestPlaced, berth.Demand{MemoryBytes: mib})}, nil
		})
	b.env.RegisterDelayedCallback(func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{Beside: true})
	}, time.Second)
	b.env.RegisterDelayedCallback(func() {
		require.Len(t, b.requests, 1, "it asks before the shape is measured")
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{Ready: true})
	}, 10*time.Second)

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, berth.PurposeRun, b.requests[0].Purpose)
	require.Equal(t, b.requests, resized, "the same request, computed anew")
	require.Empty(t, b.measured, "the probe does not wait for it any more")
}

// The first run to end measures the shape, and must tell the probe.
func TestTrial_RunBesideTheProbeTellsItsEnd(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name    string
		outcome berth.Outcome
	}{{"measured", ok(0.9)}, {"out of memory to the end", bad(berth.FailureHostOOM)}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.brief.NeedsProbe = true
			b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
			b.runs(tt.outcome)
			b.env.RegisterDelayedCallback(func() {
				b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{Beside: true})
			}, time.Second)

			b.execute(t)
			require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}, b.measured)
		})
	}
}

// A probe waits for the run of the trial that it asked to measure. A trial that
// ends instead tells the probe, in either order of its end and the probe's
// message.
func TestTrial_DeclinesTheProbe(t *testing.T) {
	t.Parallel()

	cancel := func(env *testsuite.TestWorkflowEnvironment) { env.CancelWorkflow() }
	stop := func(env *testsuite.TestWorkflowEnvironment) { env.SignalWorkflow(workflows.SignalStop, nil) }
	tell := func(role workflows.ProbeRole) func(env *testsuite.TestWorkflowEnvironment) {
		return func(env *testsuite.TestWorkflowEnvironment) { env.SignalWorkflow(workflows.SignalProbe, role) }
	}
	says := []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}

	for name, tt := range map[string]struct {
		first, then func(env *testsuite.TestWorkflowEnvironment)
		after       time.Duration // 0 = while it joins
		joined      bool          // as far as it knows
		want        []workflows.ProbeMeasured
	}{
		"told and canceled":                {tell(carry), cancel, time.Second, true, says},
		"told and canceled while it joins": {tell(carry), cancel, 0, true, says},
		"canceled and told":                {cancel, tell(carry), time.Second, true, says},
		"stopped and told":                 {stop, tell(carry), time.Second, true, says},
		"canceled and told beside":         {cancel, tell(beside), time.Second, true, says},
		"canceled and measured":            {cancel, tell(ready), time.Second, true, nil},
		"joined in a task not kept":        {tell(carry), cancel, time.Second, false, says},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.brief.NeedsProbe, b.waiting = tt.joined, true
			b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil).Maybe()
			b.env.OnActivity(a.FootprintKnown, mock.Anything, mock.Anything).Return(false, nil).Maybe()
			b.env.OnActivity(a.WithdrawPlacement, mock.Anything, mock.Anything).
				Return(berth.PlacementStatus{State: berth.RequestWithdrawn}, nil).Maybe()
			b.env.RegisterDelayedCallback(func() {
				tt.first(b.env)
				tt.then(b.env)
			}, tt.after)

			require.Equal(t, berth.TrialCanceled, b.execute(t).State)
			require.Equal(t, tt.want, b.measured)
		})
	}
}

// The probe repeats its message every ten minutes while a trial runs: the end of
// the run answers all of them, once, and sends nothing when the shape is
// measured.
func TestTrial_AnswersTheProbeOnce(t *testing.T) {
	t.Parallel()

	says := []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}

	for name, tt := range map[string]struct {
		roles []workflows.ProbeRole
		want  []workflows.ProbeMeasured
	}{
		"carrier":             {[]workflows.ProbeRole{carry, carry, carry}, says},
		"beside":              {[]workflows.ProbeRole{beside, beside, beside}, says},
		"beside and measured": {[]workflows.ProbeRole{beside, beside, ready}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.brief.NeedsProbe = true
			b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
			b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(ok(0.9), nil).After(time.Hour)

			for i, role := range tt.roles {
				b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(workflows.SignalProbe, role) }, time.Duration(i+1)*time.Second)
			}

			require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
			require.Equal(t, tt.want, b.measured)
		})
	}
}

// A message of the probe during a run does not change that run: a whole one
// counts, and a short one does not.
func TestTrial_ALateWordChangesNoRun(t *testing.T) {
	t.Parallel()

	short := workflows.ProbeRole{Short: true}
	whole, twice := []bool{false}, []bool{true, false}

	for name, tt := range map[string]struct {
		mode  berth.ProbeMode
		roles []workflows.ProbeRole
		stop  bool
		want  []bool // of each order, whether it is for a short run
	}{
		"asked for a short run":               {berth.ProbeAuto, []workflows.ProbeRole{beside, short}, false, whole},
		"asked for it, and the sweep stopped": {berth.ProbeAuto, []workflows.ProbeRole{beside, short}, true, whole},
		"asked to measure":                    {berth.ProbeShort, []workflows.ProbeRole{beside, carry}, false, whole},
		"sent beside after all":               {berth.ProbeShort, []workflows.ProbeRole{carry, beside}, false, twice},
		"measured by another":                 {berth.ProbeShort, []workflows.ProbeRole{carry, beside, ready}, false, twice},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var (
				a      *activities.Activities
				orders []bool
			)

			b := trialSetup(t)
			b.brief.NeedsProbe, b.brief.ProbeMode = true, tt.mode
			b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
			b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(func(_ context.Context, o activities.Order) (berth.Outcome, error) {
				orders = append(orders, o.Short)

				return ok(float64(len(orders))), nil
			}).After(time.Hour)

			for i, role := range tt.roles {
				b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(workflows.SignalProbe, role) }, time.Duration(i+1)*time.Second)
			}

			if tt.stop {
				b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(workflows.SignalStop, nil) }, time.Minute)
			}

			result := b.execute(t)
			require.Equal(t, tt.want, orders)
			require.Equal(t, berth.TrialSucceeded, result.State)
			require.InDelta(t, float64(len(orders)), *result.Value, 0)
		})
	}
}

// The carrier of a probe takes long: a trial that waits beside it measures the
// shape by a short run, which is thrown away.
func TestTrial_TakesTheShortRunWhileItWaitsBeside(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode, b.waiting = true, berth.ProbeAuto, true
	b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
	b.env.OnActivity(a.ResizePlacement, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
			require.True(t, in.Short, "the ledger knows that it is thrown away")

			b.waiting = false

			return activities.PlaceResult{Status: b.status(in.AttemptID, berth.RequestPlaced, berth.Demand{MemoryBytes: mib})}, nil
		}).Once()

	var orders []activities.Order

	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(_ context.Context, o activities.Order) (berth.Outcome, error) {
			orders = append(orders, o)

			return ok(float64(len(orders))), nil
		})

	for after, role := range map[time.Duration]workflows.ProbeRole{time.Second: {Beside: true}, 10 * time.Second: {Short: true}} {
		b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(workflows.SignalProbe, role) }, after)
	}

	require.InDelta(t, 2.0, *b.execute(t).Value, 0)
	require.True(t, orders[0].Short)
	require.False(t, orders[1].Short)
}

// All trials beside a probe start at the same guess. When that is too small, it
// is not their fault: with one attempt each, none would be left.
func TestTrial_GuessBesideTheProbeIsFree(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(b *activities.TrialBrief){
		"beside the probe":         func(b *activities.TrialBrief) { b.NeedsProbe = true },
		"as its workflow was lost": func(b *activities.TrialBrief) { b.Guessed, b.Made = true, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			b.brief.MaxAttempts = 1
			change(&b.brief)
			b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil).Maybe()
			b.runs(bad(berth.FailureHostOOM), ok(0.9))
			b.env.RegisterDelayedCallback(func() {
				b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{Beside: true})
			}, time.Second)

			require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
			require.Zero(t, b.requests[1].Last.Count, "so that it grows and does not get a machine for itself")
		})
	}
}

// A trial that was never tried with more memory is not infeasible.
func TestTrial_OneOutOfMemoryAfterCrashesIsAFailure(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.runs(bad(berth.FailureCrashed), bad(berth.FailureCrashed), bad(berth.FailureHostOOM))

	require.Equal(t, berth.TrialFailed, b.execute(t).State)
	require.Contains(t, b.settled.Message, "gave up after 3 attempts")
}

// "Running trials finish": also one whose worker is being replaced while its
// sweep is stopped. Its host gives the attempt back when it returns.
func TestTrial_StoppedWhileItsHostIsAway(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name  string
		comes bool
		state berth.TrialState
	}{{"it comes back", true, berth.TrialSucceeded}, {"it stays away", false, berth.TrialCanceled}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var a *activities.Activities

			b := trialSetup(t)
			n := 0
			b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
				func(context.Context, activities.Order) (berth.Outcome, error) {
					if n++; n > 1 {
						return ok(0.5), nil
					}

					b.env.SignalWorkflow(workflows.SignalStop, nil)

					b.waiting = true

					return berth.Outcome{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
				})
			b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(activities.Abandoned{}, nil)
			b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(
				func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) {
					if tt.comes {
						return b.status(b.requests[0].AttemptID, berth.RequestPlaced, berth.Demand{MemoryBytes: mib}), nil
					}

					return b.status(ref.AttemptID, berth.RequestWaiting, berth.Demand{MemoryBytes: mib}), nil
				}).Maybe()
			b.env.OnActivity(a.WithdrawPlacement, mock.Anything, mock.Anything).
				Return(berth.PlacementStatus{State: berth.RequestWithdrawn}, nil).Maybe()

			result := b.execute(t)
			require.Equal(t, tt.state, result.State, b.settled.Message)

			if tt.comes {
				require.Equal(t, 1, result.Attempts, "one container, one attempt")
			} else {
				require.Contains(t, result.Message, "waited to run again")
			}
		})
	}
}

// A trial that has waited long for its host looks rarely. Once its sweep is stopped
// the host has a minute, not the rest of that time.
func TestTrial_StoppedLongAfterItsHostWentAway(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.Order) (berth.Outcome, error) {
			b.waiting = true

			return berth.Outcome{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		})
	b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(activities.Abandoned{}, nil)
	b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(
		func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) {
			return b.status(ref.AttemptID, berth.RequestWaiting, berth.Demand{MemoryBytes: mib}), nil
		})
	b.env.OnActivity(a.WithdrawPlacement, mock.Anything, mock.Anything).Return(berth.PlacementStatus{State: berth.RequestWithdrawn}, nil)

	var stopped time.Time

	b.env.RegisterDelayedCallback(func() {
		stopped = b.env.Now()
		b.env.SignalWorkflow(workflows.SignalStop, nil)
	}, 8*time.Minute) // looked at after 1, 3, 7 and 15 minutes

	require.Equal(t, berth.TrialCanceled, b.execute(t).State)
	require.False(t, stopped.IsZero())
	require.LessOrEqual(t, b.env.Now().Sub(stopped), time.Minute+time.Second)
	require.GreaterOrEqual(t, b.env.Now().Sub(stopped), time.Minute)
}

// The workflow of a trial of a stopped sweep was lost and goes on from the
// database: a running attempt finishes.
func TestTrial_StoppedGoesThroughTheAttemptsOfBefore(t *testing.T) {
	t.Parallel()

	for made, state := range map[int]berth.TrialState{0: berth.TrialCanceled, 1: berth.TrialSucceeded} {
		b := trialSetup(t)
		b.brief.Made = made
		b.runs(ok(0.5))
		b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(workflows.SignalStop, nil) }, 0)

		require.Equal(t, state, b.execute(t).State)
		require.Len(t, b.requests, made)
	}
}

// The probe asks a trial that runs beside it for a short run. The trial reads
// this when its host is lost and it waits again. The attempt that its host then
// gives back is still a whole run.
func TestTrial_GivenBackIsNoShortProbe(t *testing.T) {
	t.Parallel()

	var (
		a      *activities.Activities
		orders []activities.Order
	)

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode = true, berth.ProbeAuto
	b.env.OnActivity(a.JoinProbe, mock.Anything, mock.Anything).Return(nil)
	b.env.RegisterDelayedCallback(func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{Beside: true})
	}, time.Second)
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(
		func(_ context.Context, order activities.Order) (berth.Outcome, error) {
			if orders = append(orders, order); len(orders) > 1 {
				return ok(0.5), nil
			}

			b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{Short: true})

			b.waiting = true

			return berth.Outcome{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		})
	b.env.OnActivity(a.AbandonAttempt, mock.Anything, mock.Anything).Return(activities.Abandoned{}, nil)

	back := func(context.Context, activities.AttemptRef) (berth.PlacementStatus, error) {
		return b.status(b.requests[0].AttemptID, berth.RequestPlaced, berth.Demand{MemoryBytes: mib}), nil
	}
	b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(back).Maybe()
	b.env.OnActivity(a.ResizePlacement, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
			return activities.PlaceResult{Status: b.status(in.AttemptID, berth.RequestWaiting, berth.Demand{MemoryBytes: mib})}, nil
		}).Once()

	result := b.execute(t)
	require.Equal(t, berth.TrialSucceeded, result.State)
	require.Len(t, orders, 2)
	require.Equal(t, orders[0].AttemptID, orders[1].AttemptID)
	require.False(t, orders[1].Short)
	require.Equal(t, 1, result.Attempts)
	b.env.AssertExpectations(t)
}

// A trial repeats a request that a restored database forgot, unchanged.
func TestTrial_RequestThatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	var a *activities.Activities

	b := trialSetup(t)
	b.waiting = true
	b.env.OnActivity(a.CheckPlacement, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.AttemptRef) (berth.PlacementStatus, error) {
			b.waiting = false // the next one is placed at once

			return berth.PlacementStatus{}, temporal.NewNonRetryableApplicationError("no such row", string(berth.KindNotFound), nil)
		}).Once()
	b.runs(ok(1))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, b.requests, 2)
	require.Equal(t, b.requests[0], b.requests[1])
}
