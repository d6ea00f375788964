package workflows_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

const stageKey = "key-of-features"

// stageSetup is a trial that needs one stage. It begins with the stage unless next says
// otherwise, and is given role a second after it joined.
func stageSetup(t *testing.T, role *workflows.StageRole, next ...activities.StageBrief) (b *trialBundle, left *[]workflows.ProbeMeasured) {
	t.Helper()

	var a *activities.Activities

	b, left = trialSetup(t), &[]workflows.ProbeMeasured{}
	b.brief.Staged, b.brief.StageBrief = true, featuresStage

	asked := 0
	b.fake(a.NextStage, func(context.Context, activities.TrialRef) (activities.StageBrief, error) {
		asked++

		return next[min(asked, len(next))-1], nil
	})
	b.fake(a.JoinStage, func(context.Context, activities.StageRef) error {
		if role != nil {
			b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(workflows.SignalStage, *role) }, time.Second)
		}

		return nil
	})
	b.env.OnSignalExternalWorkflow(mock.Anything, workflows.StageWorkflowID(stageKey), mock.Anything,
		workflows.SignalMeasured, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
		*left = append(*left, arg.(workflows.ProbeMeasured)) //nolint:forcetypeassert // our own signal

		return nil
	}).Maybe()

	return b, left
}

var (
	carryStage    = workflows.StageRole{Key: stageKey, Carry: true}
	lookAgain     = workflows.StageRole{Key: stageKey}
	featuresStage = activities.StageBrief{Stage: "features", StageKey: stageKey, ShapeKey: "shape-of-features"}
	ownCommand    = activities.StageBrief{Stage: berth.StageMain, ShapeKey: shapeKey}
)

func stagesOf(requests []activities.PlaceInput) (stages []string) {
	for _, r := range requests {
		stages = append(stages, r.Stage)
	}

	return stages
}

// The trial that is chosen runs the stage as an attempt of its own, says so, and goes on.
func TestStage_CarrierRunsItAndGoesOn(t *testing.T) {
	t.Parallel()

	b, left := stageSetup(t, &carryStage, featuresStage, ownCommand)
	b.runs(bad(berth.FailureHostOOM), ok(0), bad(berth.FailureHostOOM), ok(0.9)) // the attempt of a stage counts for this stage alone
	b.brief.MaxAttempts = 2

	result := b.execute(t)
	require.Equal(t, berth.TrialSucceeded, result.State)
	require.InDelta(t, 0.9, *result.Value, 0)
	require.Equal(t, []string{"features", "features", berth.StageMain, berth.StageMain}, stagesOf(b.requests))
	require.Equal(t, []int{1, 2, 3, 4}, []int{b.requests[0].Number, b.requests[1].Number, b.requests[2].Number, b.requests[3].Number})
	require.Nil(t, b.requests[2].Last, "the stage's out-of-memory says nothing of the trial's command")
	require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}, *left)
}

// A try runs a stage again whose output is there, without an election.
func TestStage_TryRunsItTwice(t *testing.T) {
	t.Parallel()

	repeats := featuresStage
	repeats.Repeats = true

	b, left := stageSetup(t, &carryStage, repeats, repeats, ownCommand)
	b.runs(ok(0), bad(berth.FailureInfra), ok(0), ok(0.9))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, []string{"features", "features", "features", berth.StageMain}, stagesOf(b.requests))
	require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}, *left, "other trials go on after the first run")
}

// A trial whose output another one makes runs its own command alone.
func TestStage_OthersWait(t *testing.T) {
	t.Parallel()

	for name, role := range map[string]*workflows.StageRole{"told": &lookAgain, "not told": nil} {
		b, left := stageSetup(t, role, ownCommand)

		require.Equal(t, berth.TrialSucceeded, b.execute(t).State, name)
		require.Equal(t, []string{berth.StageMain}, stagesOf(b.requests), name)
		require.Empty(t, *left, name)
	}
}

// The trial in which a stage fails says which; the others end as it did, with no attempt.
func TestStage_Fails(t *testing.T) {
	t.Parallel()

	b, left := stageSetup(t, &carryStage, ownCommand)
	b.runs(bad(berth.FailureUserError))

	require.Equal(t, berth.TrialFailed, b.execute(t).State)
	require.Equal(t, stageKey, b.settled.FailedStage)

	b, _ = stageSetup(t, &carryStage, featuresStage) // a machine that breaks is not the stage's fault: another trial may do better
	for range 12 {
		b.runs(bad(berth.FailureInfra))
	}

	result := b.execute(t)
	require.Equal(t, berth.TrialFailed, result.State)
	require.Contains(t, b.settled.Message, "stage features failed: ")
	require.Empty(t, b.settled.FailedStage)
	require.Contains(t, b.settled.Message, "stage features failed: ")
	require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1), Failed: true}}, *left)

	told := activities.StageBrief{Stage: "features", StageKey: stageKey, Failed: &berth.TrialUpdate{
		State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "stage features failed in trial 3: it is broken",
	}}
	b, _ = stageSetup(t, &lookAgain, told)

	require.Equal(t, berth.TrialFailed, b.execute(t).State)
	require.Empty(t, b.requests)
	require.Empty(t, b.settled.FailedStage)
	require.Equal(t, told.Failed.Message, b.settled.Message)
}

// A trial that finds an output lost runs the stage again before its own command.
func TestStage_LostInputIsMadeAgain(t *testing.T) {
	t.Parallel()

	b, _ := stageSetup(t, &carryStage, featuresStage, ownCommand)
	b.brief.StageBrief = ownCommand
	b.runs(bad(berth.FailureInfra), ok(0), ok(0.9))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, []string{berth.StageMain, "features", berth.StageMain}, stagesOf(b.requests))
}

// An output that does not last ends the trial after a while.
func TestStage_InputIsLostAgainAndAgain(t *testing.T) {
	t.Parallel()

	next := []activities.StageBrief{}
	outcomes := []berth.Outcome{}

	for range 2 * berth.MaxFreeRetries {
		next, outcomes = append(next, featuresStage, ownCommand), append(outcomes, bad(berth.FailureInfra), ok(0))
	}

	b, _ := stageSetup(t, &carryStage, next...)
	b.brief.StageBrief = ownCommand
	b.runs(outcomes...)

	require.Equal(t, berth.TrialFailed, b.execute(t).State)
	require.Contains(t, b.settled.Message, "the output of a stage was lost 11 times before stage main could read it")
	require.Len(t, b.requests, 2*berth.MaxFreeRetries+1)
}

// So does one that waits for a place beside what is lost.
func TestStage_InputIsLostWhileItWaits(t *testing.T) {
	t.Parallel()

	b, _ := stageSetup(t, &carryStage, ownCommand, featuresStage, featuresStage, ownCommand)
	b.brief.StageBrief, b.waiting = ownCommand, true
	b.look = func(ref activities.AttemptRef) (berth.PlacementStatus, error) {
		b.waiting = false

		return b.status(ref.AttemptID, berth.RequestWaiting), nil
	}
	b.runs(ok(0), ok(0.9))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, []string{berth.StageMain, "features", berth.StageMain}, stagesOf(b.requests))
}

// A trial that waits for a place to run a stage leaves it to another one when it is asked to.
func TestStage_Yields(t *testing.T) {
	t.Parallel()

	b, left := stageSetup(t, &carryStage, featuresStage, ownCommand)
	b.waiting = true
	b.at(3*time.Second, func() {
		b.waiting = false
		b.env.SignalWorkflow(workflows.SignalStage, lookAgain)
	})
	b.runs(ok(0), ok(0.9))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, []string{"features", "features", berth.StageMain}, stagesOf(b.requests), "it was elected again")
	require.Equal(t, []workflows.ProbeMeasured{
		{WorkflowID: workflows.TrialWorkflowID(sweepID, 1), Failed: true}, {WorkflowID: workflows.TrialWorkflowID(sweepID, 1)},
	}, *left)
}

// One that runs it goes on.
func TestStage_YieldsNotWhileItRuns(t *testing.T) {
	t.Parallel()

	b, left := stageSetup(t, &carryStage, ownCommand)
	b.takes = time.Minute
	b.at(3*time.Second, func() { b.env.SignalWorkflow(workflows.SignalStage, lookAgain) })
	b.runs(ok(0), ok(0.9))

	require.Equal(t, berth.TrialSucceeded, b.execute(t).State)
	require.Equal(t, []string{"features", berth.StageMain}, stagesOf(b.requests))
	require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1)}}, *left)
}

// A canceled trial leaves the stage to the next, also when it did not read its role.
func TestStage_EndedCarrierLeavesIt(t *testing.T) {
	t.Parallel()

	for name, end := range endings {
		b, left := stageSetup(t, nil, featuresStage)
		b.at(2*time.Second, func() {
			end(b)
			b.env.SignalWorkflow(workflows.SignalStage, carryStage)
		})

		require.Equal(t, berth.TrialCanceled, b.execute(t).State, name)
		require.Equal(t, []workflows.ProbeMeasured{{WorkflowID: workflows.TrialWorkflowID(sweepID, 1), Failed: true}}, *left, name)
	}
}

// stageTold is what a StageWorkflow told.
type stageTold struct {
	trial string
	carry bool
}

// elects runs a StageWorkflow whose output is there once known says so.
func elects(t *testing.T, known func() bool, act func(b *probeBundle)) (all []stageTold) {
	t.Helper()

	var a *activities.Activities

	b := probeSetup(t)
	began := b.env.Now()
	b.env.OnActivity(a.PausedTrials, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.PausedInput) (paused []string, _ error) {
		for _, id := range in.WorkflowIDs {
			if strings.HasPrefix(id, "paused") && b.env.Now().Sub(began) > 10*time.Second {
				paused = append(paused, id)
			}
		}

		return paused, nil
	}).Maybe()
	b.env.OnActivity(a.StageKnown, mock.Anything, mock.Anything).Return(func(context.Context, activities.StageRef) (bool, error) { return known(), nil })
	b.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, workflows.SignalStage, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			role := arg.(workflows.StageRole) //nolint:forcetypeassert // our own signal
			require.Equal(t, stageKey, role.Key)

			b.mu.Lock()
			defer b.mu.Unlock()

			all = append(all, stageTold{id, role.Carry})

			return nil
		})
	act(b)
	b.env.ExecuteWorkflow(workflows.StageWorkflow, workflows.ProbeInput{StageKey: stageKey})
	require.NoError(t, b.env.GetWorkflowError())

	return all
}

// One trial runs a stage; the others go on once its output is there.
func TestStageWorkflow_OneRunsIt(t *testing.T) {
	t.Parallel()

	known := false
	told := elects(t, func() bool { return known }, func(b *probeBundle) {
		b.want(0, "a", "b", "c")
		b.env.RegisterDelayedCallback(func() {
			known = true
			b.env.SignalWorkflow(workflows.SignalMeasured, workflows.ProbeMeasured{WorkflowID: "a"})
		}, time.Second)
	})

	require.Equal(t, stageTold{"a", true}, told[0])
	require.ElementsMatch(t, []stageTold{{"b", false}, {"c", false}}, told[1:])
}

// When the trial that runs it ends without an output, the others look whether it failed for
// them; those that come back elect again.
func TestStageWorkflow_EndsWithItsCarrier(t *testing.T) {
	t.Parallel()

	told := elects(t, func() bool { return false }, func(b *probeBundle) {
		b.want(0, "a", "b", "c")
		b.env.RegisterDelayedCallback(func() {
			b.env.SignalWorkflow(workflows.SignalMeasured, workflows.ProbeMeasured{WorkflowID: "a", Failed: true})
		}, time.Second)
	})

	require.Equal(t, stageTold{"a", true}, told[0])
	require.ElementsMatch(t, []stageTold{{"b", false}, {"c", false}}, told[1:])
}

// A carrier whose sweep is paused is asked to yield when others wait, and its sweep's trials are
// not chosen while there are others.
func TestStageWorkflow_APausedSweepKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()

	known := false
	told := elects(t, func() bool { return known }, func(b *probeBundle) {
		b.want(0, "paused-1", "paused-2", "c") // from 10 s on
		b.env.RegisterDelayedCallback(func() { // it has withdrawn its request
			b.env.SignalWorkflow(workflows.SignalMeasured, workflows.ProbeMeasured{WorkflowID: "paused-1", Failed: true})
			b.env.SignalWorkflow(workflows.SignalWant, workflows.ProbeWanted{WorkflowID: "paused-1"})
			b.env.SignalWorkflow(workflows.SignalWant, workflows.ProbeWanted{WorkflowID: "paused-2"})
			b.env.SignalWorkflow(workflows.SignalWant, workflows.ProbeWanted{WorkflowID: "c"})
		}, 70*time.Second)
		b.env.RegisterDelayedCallback(func() {
			known = true
			b.env.SignalWorkflow(workflows.SignalMeasured, workflows.ProbeMeasured{WorkflowID: "c"})
		}, 80*time.Second)
	})

	require.Equal(t, stageTold{"paused-1", true}, told[0])
	require.Contains(t, told, stageTold{"paused-1", false}, "it is asked to yield")
	require.Contains(t, told, stageTold{"c", true})
	require.NotContains(t, told, stageTold{"paused-2", true})
}
