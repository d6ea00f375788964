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

	waiting bool                                                       // requests wait instead of being placed at once
	run     func(context.Context, berth.Order) (berth.Outcome, error)  // an attempt, or the order to stop it
	takes   time.Duration                                              // that an attempt runs
	look    func(activities.AttemptRef) (berth.PlacementStatus, error) // at a request that waits
	resize  func(activities.PlaceInput) berth.RequestState             // of a request that waits
	left    berth.RequestState                                         // of a request that is withdrawn
	known   func() bool                                                // the footprint
	result  *berth.Outcome                                             // that an abandoned attempt had committed

	wasShort          map[string]bool // what the ledger says of requests, by attempt
	requests, resized []activities.PlaceInput
	orders            []berth.Order
	abandoned         []activities.AbandonInput
	settled           berth.TrialUpdate
	measured          []workflows.ProbeMeasured
}

func trialSetup(t *testing.T) *trialBundle {
	t.Helper()

	var a *activities.Activities

	b := &trialBundle{env: environment(), wasShort: make(map[string]bool), left: berth.RequestWithdrawn, known: func() bool { return false }, brief: activities.TrialBrief{
		StageBrief: activities.StageBrief{Stage: berth.StageMain, ShapeKey: shapeKey}, TrialID: "trial", Values: "lr=0.1", MaxAttempts: 3,
		ProbeMode: berth.ProbeFull, MaxDuration: berth.Duration(time.Hour), Heartbeat: berth.Duration(time.Minute),
		HostPatience: berth.Duration(2 * time.Minute), ProbeMaxDuration: berth.Duration(2 * time.Minute),
	}}
	b.look = func(ref activities.AttemptRef) (berth.PlacementStatus, error) {
		return b.status(ref.AttemptID, berth.RequestWaiting), nil
	}
	b.runs(ok(0.9))
	b.env.RegisterActivity(&activities.Activities{})
	b.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.TrialWorkflowID(sweepID, 1)})

	b.fake(a.BeginTrial, func(context.Context, activities.TrialRef) (activities.TrialBrief, error) { return b.brief, nil })
	b.fake(a.JoinProbe, func(context.Context, activities.ProbeRef) error { return nil })
	b.fake(a.FootprintKnown, func(context.Context, activities.ShapeRef) (bool, error) { return b.known(), nil })
	b.fake(a.RequestPlacement, func(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
		b.requests, b.wasShort[in.AttemptID] = append(b.requests, in), in.Short
		status := b.status(in.AttemptID, berth.RequestPlaced)
		status.Demand = berth.Demand{MemoryBytes: 512 * mib, CPUMilli: 1000}

		if in.Last != nil {
			status.Demand.MemoryBytes = in.Last.Demand.MemoryBytes * 2
		}

		if b.waiting {
			status.State = berth.RequestWaiting
		}

		return activities.PlaceResult{Asked: status.Demand, Status: status}, nil
	})
	b.fake(a.ResizePlacement, func(_ context.Context, in activities.PlaceInput) (activities.PlaceResult, error) {
		b.resized = append(b.resized, in)
		if b.waiting { // else it was placed before
			b.wasShort[in.AttemptID] = in.Short
		}

		return activities.PlaceResult{Status: b.status(in.AttemptID, b.resize(in))}, nil
	})
	b.fake(a.CheckPlacement, func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) { return b.look(ref) })
	b.fake(a.WithdrawPlacement, func(_ context.Context, ref activities.AttemptRef) (berth.PlacementStatus, error) {
		return b.status(ref.AttemptID, b.left), nil
	})
	b.fake(a.AbandonAttempt, func(_ context.Context, in activities.AbandonInput) (activities.Abandoned, error) {
		b.abandoned = append(b.abandoned, in)

		return activities.Abandoned{Finished: b.result}, nil
	})
	b.env.OnActivity(a.RunTrial, mock.Anything, mock.Anything).Return(func(ctx context.Context, o berth.Order) (berth.Outcome, error) {
		b.orders = append(b.orders, o)

		return b.run(ctx, o)
	}).AfterFn(func() time.Duration { return b.takes }).Maybe()
	b.fake(a.SettleTrial, func(_ context.Context, u berth.TrialUpdate) error {
		b.settled = u

		return nil
	})
	b.env.OnSignalExternalWorkflow(mock.Anything, workflows.ProbeWorkflowID(shapeKey), mock.Anything,
		workflows.SignalMeasured, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
		b.measured = append(b.measured, arg.(workflows.ProbeMeasured)) //nolint:forcetypeassert // our own signal

		return nil
	}).Maybe()

	return b
}

func (b *trialBundle) fake(step, answer any) {
	b.env.OnActivity(step, mock.Anything, mock.Anything).Return(answer).Maybe()
}

func (b *trialBundle) status(attempt string, state berth.RequestState) berth.PlacementStatus {
	return berth.PlacementStatus{
		AttemptID: attempt, State: state, HostID: "h", HostName: "host", Token: 7, Demand: berth.Demand{MemoryBytes: mib},
		Short: state == berth.RequestPlaced && b.wasShort[attempt],
	}
}

// runs makes the attempts end with these outcomes, one after the other.
func (b *trialBundle) runs(outcomes ...berth.Outcome) {
	b.run = func(context.Context, berth.Order) (berth.Outcome, error) {
		return ended(outcomes[min(len(b.orders), len(outcomes))-1])
	}
}

// ended is how an activity returns an outcome.
func ended(o berth.Outcome) (berth.Outcome, error) {
	if o.Kind == berth.FailureOK {
		return o, nil
	}

	return o, temporal.NewApplicationErrorWithOptions(o.Message, string(o.Kind), temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{o}})
}

// loses makes the first attempt end with an error, after which do is called, and the
// others succeed.
func (b *trialBundle) loses(err error, do func()) {
	b.run = func(context.Context, berth.Order) (berth.Outcome, error) {
		if len(b.orders) > 1 {
			return ok(0.5), nil
		}

		if do != nil {
			do()
		}

		return berth.Outcome{}, err
	}
}

// away is the error of a host that takes no orders.
func away() error { return temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil) }

// at does something after a time.
func (b *trialBundle) at(after time.Duration, do func()) { b.env.RegisterDelayedCallback(do, after) }

// told makes the probe tell its roles, one a second.
func (b *trialBundle) told(roles ...workflows.ProbeRole) {
	for i, role := range roles {
		b.at(time.Duration(i+1)*time.Second, func() { b.env.SignalWorkflow(workflows.SignalProbe, role) })
	}
}

func (b *trialBundle) stop() { b.env.SignalWorkflow(workflows.SignalStop, nil) }

// endings are the ways in which a person ends a trial.
var endings = map[string]func(b *trialBundle){"stop": (*trialBundle).stop, "cancel": func(b *trialBundle) { b.env.CancelWorkflow() }}

func (b *trialBundle) start(in workflows.TrialInput) error {
	b.env.ExecuteWorkflow(workflows.TrialWorkflow, in)

	return b.env.GetWorkflowError()
}

func (b *trialBundle) execute(t *testing.T) workflows.TrialResult {
	t.Helper()

	require.NoError(t, b.start(workflows.TrialInput{SweepID: sweepID, Number: 1}))
	require.True(t, b.env.IsWorkflowCompleted())

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

func canceled(message string) berth.Outcome {
	return berth.Outcome{Kind: berth.FailureCanceled, Message: message}
}

// says is what a trial tells the probe at its end.
var says = []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}

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
	require.Equal(t, berth.PurposeRun, b.requests[0].Purpose)

	for i, r := range b.requests {
		require.Equal(t, workflows.AttemptID(workflows.TrialWorkflowID(sweepID, 1), i+1), r.AttemptID)
	}
}

func TestTrial_EndsAccordingToKind(t *testing.T) {
	t.Parallel()

	const (
		infra, crashed, oom = berth.FailureInfra, berth.FailureCrashed, berth.FailureHostOOM
		failed              = berth.TrialFailed
	)

	for name, tt := range map[string]struct {
		kinds    []berth.FailureKind // the last repeats
		want     berth.TrialState
		kind     berth.FailureKind
		attempts int
		says     string
	}{
		"user error is not repeated":                   {[]berth.FailureKind{berth.FailureUserError}, failed, berth.FailureUserError, 1, ""},
		"bad command is not repeated":                  {[]berth.FailureKind{berth.FailureBadCommand}, failed, berth.FailureBadCommand, 1, ""},
		"missing result is not repeated":               {[]berth.FailureKind{berth.FailureNoResult}, failed, berth.FailureNoResult, 1, ""},
		"stopped early":                                {[]berth.FailureKind{berth.FailurePruned}, berth.TrialPruned, berth.FailurePruned, 1, ""},
		"crash is repeated until attempts are used up": {[]berth.FailureKind{crashed}, failed, crashed, 3, ""},
		"out of memory for ever is infeasible":         {[]berth.FailureKind{oom}, berth.TrialInfeasible, berth.FailureTooBig, 3, ""},
		"it was never tried with more memory":          {[]berth.FailureKind{crashed, crashed, oom}, failed, oom, 3, "gave up after 3 attempts"},
		"infrastructure is free, but not for ever":     {[]berth.FailureKind{infra}, failed, infra, 10, ""},
		"infrastructure does not use up attempts":      {[]berth.FailureKind{infra, infra, crashed}, failed, crashed, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
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
			require.Contains(t, b.settled.Message, tt.says)
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

// An attempt without an outcome, of a lost host or of one that refuses it, is closed before
// the next one asks: the ledger takes no second live attempt of a trial. A host that is
// cut off from Temporal alone commits its result, which counts.
func TestTrial_LostHostIsFencedAndReplaced(t *testing.T) {
	t.Parallel()

	refused := temporal.NewNonRetryableApplicationError("container belongs to another launch", string(berth.KindConflict), nil)

	for name, tt := range map[string]struct {
		err       error
		committed *berth.Outcome
		requests  int
		refused   bool // its host must not get it back
		says      string
	}{
		"lost":                {away(), nil, 2, false, "host host did not answer"},
		"it committed before": {away(), new(ok(0.5)), 1, false, "host host did not answer"},
		"it refuses":          {refused, nil, 2, true, "host host could not carry the attempt out: container belongs to another launch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := trialSetup(t)
			b.loses(tt.err, nil)
			b.result = tt.committed
			b.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
				if info.ActivityType.Name == "AbandonAttempt" {
					require.Len(t, b.requests, 1, "closed before the next one asks")
				}
			})

			result := b.execute(t)
			require.Equal(t, berth.TrialSucceeded, result.State)
			require.InDelta(t, 0.5, *result.Value, 0)
			require.Len(t, b.requests, tt.requests)
			require.Len(t, b.abandoned, 1)
			require.Equal(t, b.requests[0].AttemptID, b.abandoned[0].AttemptID)
			require.Equal(t, tt.refused, b.abandoned[0].Refused)
			require.Contains(t, b.abandoned[0].Message, tt.says)
		})
	}
}

func TestTrial_WaitsForTheSignalAndLooksAnyway(t *testing.T) {
	t.Parallel()

	for _, signal := range []bool{true, false} { // it may be lost
		b := trialSetup(t)
		b.waiting = true
		b.look = func(activities.AttemptRef) (berth.PlacementStatus, error) {
			return b.status("x", berth.RequestPlaced), nil
		}

		if signal {
			b.at(time.Second, func() { b.env.SignalWorkflow(workflows.SignalPlaced, workflows.Placed{AttemptID: "x"}) })
		}

		start := b.env.Now()
		require.Equal(t, berth.TrialSucceeded, b.execute(t).State)

		if waited := b.env.Now().Sub(start); signal {
			require.Less(t, waited, 10*time.Second)
		} else {
			require.GreaterOrEqual(t, waited, 30*time.Second)
		}
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
			waited, runs := time.Duration(0), 0

			for again := true; again; runs++ {
				b := trialSetup(t)
				b.waiting, b.brief.NeedsProbe = true, probes
				start := b.env.Now()
				events := 0
				look := func(after time.Duration) bool {
					events += eventsOfALook
					b.env.SetCurrentHistoryLength(events)

					return waited+b.env.Now().Sub(start) >= after
				}
				b.known = func() bool { return look(wait / 2) }
				b.look = func(ref activities.AttemptRef) (berth.PlacementStatus, error) {
					if look(wait) {
						return b.status(ref.AttemptID, berth.RequestPlaced), nil
					}

					return b.status(ref.AttemptID, berth.RequestWaiting), nil
				}

				err := b.start(in)
				require.True(t, b.env.IsWorkflowCompleted())
				require.Less(t, events, 4096, "where Temporal suggests another run")

				for _, request := range b.requests {
					require.Equal(t, workflows.AttemptID(workflows.TrialWorkflowID(sweepID, 1), 1), request.AttemptID, "one request for all runs")
				}

				waited += b.env.Now().Sub(start)

				if again = workflow.IsContinueAsNewError(err); again {
					in = decodeNext[workflows.TrialInput](t, err)
				} else {
					require.NoError(t, err)
					require.Equal(t, berth.TrialSucceeded, b.settled.State)
				}
			}

			require.GreaterOrEqual(t, waited, wait)
			require.Greater(t, runs, 30)
		})
	}
}

// decodeNext is the input of the run after one that continues as new.
func decodeNext[T any](t *testing.T, err error) (in T) {
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

	b := trialSetup(t)
	b.run = func(context.Context, berth.Order) (berth.Outcome, error) {
		b.waiting = true

		return ended(bad(berth.FailureHostOOM))
	}
	b.look = func(ref activities.AttemptRef) (berth.PlacementStatus, error) {
		b.env.SetContinueAsNewSuggested(true)

		return b.status(ref.AttemptID, berth.RequestWaiting), nil
	}

	in := decodeNext[workflows.TrialInput](t, b.start(workflows.TrialInput{SweepID: sweepID, Number: 1}))
	require.Equal(t, 1, in.Carried.OOMs)
	require.Empty(t, b.settled.State)

	next := trialSetup(t)
	next.runs(bad(berth.FailureHostOOM))
	require.NoError(t, next.start(in))
	require.Equal(t, berth.TrialInfeasible, next.settled.State)
	require.Len(t, next.requests, 2, "of three attempts")
	require.Equal(t, b.requests[1].AttemptID, next.requests[0].AttemptID)
	require.Equal(t, b.requests[1].Last, next.requests[0].Last)
}

// A stop or a cancellation ends a trial that waits, also one that comes with the look after
// which its run would end: that is this run's.
func TestTrial_StopOrCancelWhileWaiting(t *testing.T) {
	t.Parallel()

	for name, end := range endings {
		for _, last := range []bool{false, true} {
			b := trialSetup(t)
			b.waiting = true

			if last {
				b.look = func(ref activities.AttemptRef) (berth.PlacementStatus, error) {
					b.env.SetContinueAsNewSuggested(true)
					end(b)

					return b.status(ref.AttemptID, berth.RequestWaiting), nil
				}
			} else {
				b.at(time.Second, func() { end(b) })
			}

			require.Equal(t, berth.TrialCanceled, b.execute(t).State, name)
			require.Equal(t, berth.TrialCanceled, b.settled.State)
			require.Empty(t, b.orders)
		}
	}
}

// What became of a canceled attempt is what its host says.
func TestTrial_CanceledSaysWhatBecameOfItsContainer(t *testing.T) {
	t.Parallel()

	hangs := canceled("canceled; Docker does not answer")

	b := trialSetup(t)
	b.loses(temporal.NewCanceledError(hangs), nil)

	require.Equal(t, berth.TrialCanceled, b.execute(t).State)
	require.Equal(t, berth.FailureCanceled, b.settled.Kind)
	require.Equal(t, hangs.Message, b.settled.Message)
	require.Len(t, b.orders, 1)
}

// Temporal itself cancels an attempt that no worker has yet. Its host gives the place back
// at once. The trial does not wait for a slow host: the ledger has the attempt's state.
func TestTrial_CanceledBeforeAWorkerHadIt(t *testing.T) {
	t.Parallel()

	var (
		notStarted = []any{"ACTIVITY_ID_NOT_STARTED"}
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
		"its host is away":         {details: notStarted, err: away(), state: berth.TrialCanceled, want: "no worker of it answers"},
		"its host takes too long":  {details: notStarted, err: temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil), state: berth.TrialCanceled, want: "it took too long"},
		"it is fenced":             {details: notStarted, err: fenced, state: berth.TrialCanceled, want: "not ours any more"},
		"it is the last of many":   {details: notStarted, made: berth.MaxFreeRetries - 1, err: fenced, state: berth.TrialCanceled, want: "not ours any more"},
		"it had committed a value": {details: notStarted, err: away(), finished: &result, state: berth.TrialSucceeded, want: "finished"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := trialSetup(t)
			b.result = tt.finished
			b.run = func(ctx context.Context, o berth.Order) (berth.Outcome, error) {
				switch {
				case o.Stop:
					require.Equal(t, 2*time.Minute, activity.GetInfo(ctx).ScheduleToCloseTimeout, "a host that answers, and cannot, is not waited for either")

					return tt.back, tt.err
				case len(b.orders) <= tt.made:
					return ended(bad(berth.FailureInfra))
				default:
					b.env.CancelWorkflow()

					return berth.Outcome{}, temporal.NewCanceledError(tt.details...)
				}
			}

			require.Equal(t, tt.state, b.execute(t).State)
			require.Contains(t, b.settled.Message, tt.want)
			require.Len(t, b.orders, tt.made+2)
			require.Len(t, b.requests, tt.made+1)
			require.Equal(t, berth.Order{AttemptID: b.orders[tt.made].AttemptID, Token: 7, Stop: true}, b.orders[tt.made+1])
		})
	}
}

// Its host goes away while a trial is canceled that just got a place there.
func TestTrial_CanceledAsItsHostGoesAway(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.waiting, b.left = true, berth.RequestPlaced
	b.at(time.Second, b.env.CancelWorkflow)
	b.loses(away(), nil)

	require.Equal(t, berth.TrialCanceled, b.execute(t).State)
	require.Len(t, b.requests, 1)
	require.Len(t, b.orders, 1)
	require.True(t, b.orders[0].Stop)
	require.Contains(t, b.abandoned[0].Message, "no worker of it answers")
}

func TestTrial_CarriesTheProbe(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.brief.NeedsProbe = true
	b.runs(bad(berth.FailureHostOOM), ok(0.9))
	b.told(carry)

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, berth.PurposeProbe, b.requests[0].Purpose)
	require.Equal(t, berth.PurposeProbe, b.requests[1].Purpose, "it goes on measuring until it knows")
	require.Equal(t, says, b.measured, "told once")
}

func TestTrial_SlowProbeIsCapped(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode, b.takes = true, berth.ProbeAuto, 10*time.Minute
	b.told(carry)

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, b.measured, 2)
	require.True(t, b.measured[0].Capped, "the others are told not to wait")
	require.False(t, b.measured[1].Capped)
}

// A trial of a shape that another one measures asks for a place at once, at the
// unmeasured size, and for the measured size as soon as that is known.
func TestTrial_RunsBesideTheProbe(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.brief.NeedsProbe, b.waiting = true, true
	b.resize = func(activities.PlaceInput) berth.RequestState { return berth.RequestPlaced }
	b.told(beside)
	b.at(10*time.Second, func() {
		require.Len(t, b.requests, 1, "it asks before the shape is measured")
		b.env.SignalWorkflow(workflows.SignalProbe, ready)
	})

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, berth.PurposeRun, b.requests[0].Purpose)
	require.Equal(t, b.requests, b.resized, "the same request, computed again")
	require.Empty(t, b.measured, "the probe does not wait for it any more")
}

// A probe waits for the run of the trial that it asked to measure. A trial that
// ends instead tells the probe, in either order of its end and the probe's
// message.
func TestTrial_DeclinesTheProbe(t *testing.T) {
	t.Parallel()

	cancel, stop := endings["cancel"], endings["stop"]
	tell := func(role workflows.ProbeRole) func(b *trialBundle) {
		return func(b *trialBundle) { b.env.SignalWorkflow(workflows.SignalProbe, role) }
	}

	for name, tt := range map[string]struct {
		first, then func(b *trialBundle)
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

			b := trialSetup(t)
			b.brief.NeedsProbe, b.waiting = tt.joined, true
			b.at(tt.after, func() {
				tt.first(b)
				tt.then(b)
			})

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

	for name, tt := range map[string]struct {
		roles   []workflows.ProbeRole
		outcome berth.Outcome
		want    []workflows.ProbeMeasured
	}{
		"carrier":                     {[]workflows.ProbeRole{carry, carry, carry}, ok(0.9), says},
		"beside":                      {[]workflows.ProbeRole{beside, beside, beside}, ok(0.9), says},
		"beside and measured":         {[]workflows.ProbeRole{beside, beside, ready}, ok(0.9), nil},
		"out of memory, time by time": {[]workflows.ProbeRole{beside}, bad(berth.FailureHostOOM), says},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := trialSetup(t)
			b.brief.NeedsProbe, b.takes = true, time.Hour
			b.runs(tt.outcome)
			b.told(tt.roles...)
			b.execute(t)
			require.Equal(t, tt.want, b.measured)
		})
	}
}

// A message of the probe during a run does not change that run: a whole one
// counts, and a short one does not: it is thrown away.
func TestTrial_ALateWordChangesNoRun(t *testing.T) {
	t.Parallel()

	short := workflows.ProbeRole{ShapeKey: shapeKey, Short: true}
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
		"measures":                            {berth.ProbeShort, []workflows.ProbeRole{carry}, false, twice},
		"sent beside after all":               {berth.ProbeShort, []workflows.ProbeRole{carry, beside}, false, twice},
		"measured by another":                 {berth.ProbeShort, []workflows.ProbeRole{carry, beside, ready}, false, twice},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := trialSetup(t)
			b.brief.NeedsProbe, b.brief.ProbeMode, b.takes = true, tt.mode, time.Hour
			b.runs(ok(1), ok(2))
			b.told(tt.roles...)

			if tt.stop {
				b.at(time.Minute, b.stop)
			}

			result := b.execute(t)
			require.Equal(t, tt.want, b.short())
			require.Equal(t, berth.TrialSucceeded, result.State)
			require.InDelta(t, float64(len(b.orders)), *result.Value, 0)
		})
	}
}

// short says of each order whether it is for a short run.
func (b *trialBundle) short() (short []bool) {
	for _, o := range b.orders {
		short = append(short, o.Short)
	}

	return short
}

// The carrier of a probe takes long: a trial that waits beside it measures the
// shape by a short run, which is thrown away.
func TestTrial_TakesTheShortRunWhileItWaitsBeside(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode, b.waiting = true, berth.ProbeAuto, true
	b.runs(ok(1), ok(2))
	b.resize = func(in activities.PlaceInput) berth.RequestState {
		require.True(t, in.Short, "the ledger knows that it is thrown away")
		require.Equal(t, berth.PurposeProbe, in.Purpose)

		b.waiting = false

		return berth.RequestPlaced
	}
	b.told(beside)
	b.at(10*time.Second, func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{ShapeKey: shapeKey, Short: true})
	})

	require.InDelta(t, 2.0, *b.execute(t).Value, 0)
	require.Len(t, b.resized, 1)
	require.Equal(t, []bool{true, false}, b.short())
}

// The probe asks for a short run in the moment in which the placer places the trial for a whole
// one. That run stays whole, and its result counts.
func TestTrial_PlacedBeforeItWasAskedForAShortRun(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode, b.waiting = true, berth.ProbeAuto, true
	b.resize = func(activities.PlaceInput) berth.RequestState { return berth.RequestPlaced }
	b.told(beside)
	b.at(10*time.Second, func() {
		b.waiting = false

		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{ShapeKey: shapeKey, Short: true})
	})

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, b.resized, 1)
	require.Equal(t, []bool{false}, b.short())
	require.Len(t, b.measured, 1, "it measured the shape all the same")
}

// All trials beside a probe start at the same guess. When that is too small, it
// is not their fault: with one attempt each, none would be left.
func TestTrial_GuessBesideTheProbeIsFree(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(b *activities.TrialBrief){
		"beside the probe":         func(b *activities.TrialBrief) { b.NeedsProbe = true },
		"as its workflow was lost": func(b *activities.TrialBrief) { b.Guessed, b.Made = true, 1 },
	} {
		b := trialSetup(t)
		b.brief.MaxAttempts = 1
		change(&b.brief)
		b.runs(bad(berth.FailureHostOOM), ok(0.9))
		b.told(beside)

		require.Equal(t, berth.TrialSucceeded, b.execute(t).State, name)
		require.Zero(t, b.requests[1].Last.Count, "so that it grows and does not get a machine for itself")
	}
}

// "Running trials finish": also one whose worker is being replaced while its
// sweep is stopped. Its host gives the attempt back when it returns.
func TestTrial_StoppedWhileItsHostIsAway(t *testing.T) {
	t.Parallel()

	for comes, state := range map[bool]berth.TrialState{true: berth.TrialSucceeded, false: berth.TrialCanceled} {
		b := trialSetup(t)
		b.loses(away(), func() {
			b.stop()

			b.waiting = true
		})

		if comes {
			b.look = func(activities.AttemptRef) (berth.PlacementStatus, error) {
				return b.status(b.requests[0].AttemptID, berth.RequestPlaced), nil
			}
		}

		result := b.execute(t)
		require.Equal(t, state, result.State, b.settled.Message)

		if comes {
			require.Equal(t, 1, result.Attempts, "one container, one attempt")
		} else {
			require.Contains(t, result.Message, "waited to run again")
		}
	}
}

// A trial that has waited long for its host looks rarely. Once its sweep is stopped
// the host has a minute, not the rest of that time.
func TestTrial_StoppedLongAfterItsHostWentAway(t *testing.T) {
	t.Parallel()

	var stopped time.Time

	b := trialSetup(t)
	b.loses(away(), func() { b.waiting = true })
	b.at(8*time.Minute, func() { // looked at after 1, 3, 7 and 15 minutes
		stopped = b.env.Now()
		b.stop()
	})

	require.Equal(t, berth.TrialCanceled, b.execute(t).State)
	require.InDelta(t, 60.5, b.env.Now().Sub(stopped).Seconds(), 0.5)
}

// The workflow of a trial of a stopped sweep was lost and goes on from the
// database: a running attempt finishes.
func TestTrial_StoppedGoesThroughTheAttemptsOfBefore(t *testing.T) {
	t.Parallel()

	for made, state := range map[int]berth.TrialState{0: berth.TrialCanceled, 1: berth.TrialSucceeded} {
		b := trialSetup(t)
		b.brief.Made = made
		b.at(0, b.stop)

		require.Equal(t, state, b.execute(t).State)
		require.Len(t, b.requests, made)
	}
}

// The probe asks a trial that runs beside it for a short run. The trial reads
// this when its host is lost and it waits again. The attempt that its host then
// gives back is still a whole run.
func TestTrial_GivenBackIsNoShortProbe(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.brief.NeedsProbe, b.brief.ProbeMode = true, berth.ProbeAuto
	b.told(beside)
	b.loses(away(), func() {
		b.env.SignalWorkflow(workflows.SignalProbe, workflows.ProbeRole{ShapeKey: shapeKey, Short: true})

		b.waiting = true
	})
	b.look = func(activities.AttemptRef) (berth.PlacementStatus, error) {
		return b.status(b.requests[0].AttemptID, berth.RequestPlaced), nil
	}
	b.resize = func(activities.PlaceInput) berth.RequestState { return berth.RequestWaiting }

	result := b.execute(t)
	require.Equal(t, berth.TrialSucceeded, result.State)
	require.Len(t, b.resized, 1)
	require.Equal(t, []bool{false, false}, b.short())
	require.Equal(t, b.orders[0].AttemptID, b.orders[1].AttemptID)
	require.Equal(t, 1, result.Attempts)
}

// A trial repeats a request that a restored database forgot, unchanged.
func TestTrial_RequestThatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	b := trialSetup(t)
	b.waiting = true
	b.look = func(activities.AttemptRef) (berth.PlacementStatus, error) {
		b.waiting = false // the next one is placed at once

		return berth.PlacementStatus{}, temporal.NewNonRetryableApplicationError("no such row", string(berth.KindNotFound), nil)
	}

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Len(t, b.requests, 2)
	require.Equal(t, b.requests[0], b.requests[1])
}
