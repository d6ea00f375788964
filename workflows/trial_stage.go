package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// joinStage has the trial wait until the output of its next stage is there, or until it is to
// run the stage itself. It returns whether the trial's next stage is another one now. The
// signal is a shortcut: a timer looks at the ledger, in case it was lost.
func (t *trial) joinStage(ctx workflow.Context) (changed bool, err error) {
	if t.Brief.StageKey == "" || t.CarriesStage || t.Brief.Repeats {
		return false, nil
	}

	ref := activities.StageRef{
		Key: t.Brief.StageKey, Stage: t.Brief.Stage, SweepID: t.in.SweepID, TrialID: t.Brief.TrialID, WorkflowID: t.id,
	}

	t.say(ctx, berth.TrialWaiting, "waiting for stage "+t.Brief.Stage)

	for pause := recheckFirst; !t.stopped(); pause = min(2*pause, recheckLongest) {
		if err := step(ctx, acts.JoinStage, ref, nil); err != nil {
			return false, err
		}

		answered := false

		_, err := awaitFor(ctx, pause, "look for the output of stage "+t.Brief.Stage, func() bool {
			answered = t.hearStage() || answered

			return answered || t.stopped()
		})
		if err != nil || t.CarriesStage {
			return false, err
		}

		if err := t.nextStage(ctx); err != nil || t.Brief.StageKey != ref.Key || t.Brief.Failed != nil {
			return true, err
		}

		if t.historyTooLong(ctx) {
			return false, t.carryOn(ctx)
		}
	}

	return false, nil
}

// hearStage reads the roles that elections gave to the trial, and reports whether the one for
// its next stage is among them.
func (t *trial) hearStage() (heard bool) {
	var role StageRole

	for t.stages.ReceiveAsync(&role) {
		if role.Key == t.Brief.StageKey {
			t.CarriesStage, heard = role.Carry, true
		}
	}

	return heard
}

// yields reports whether a trial that waits for a place to run a stage was asked to leave it
// to another one. It is the carrier until its request is withdrawn.
func (t *trial) yields() bool {
	if t.CarriesStage && t.hearStage() && !t.CarriesStage {
		t.CarriesStage, t.yielding = true, true
	}

	return t.yielding
}

// leaveStage tells the election of the stage that this trial runs that its run is over.
func (t *trial) leaveStage(ctx workflow.Context, failed bool) {
	carries := t.CarriesStage

	if t.hearStage(); !carries && !t.CarriesStage {
		return
	}

	t.CarriesStage = false
	clean, _ := workflow.NewDisconnectedContext(ctx)
	news := ProbeMeasured{WorkflowID: t.id, Failed: failed}

	if err := workflow.SignalExternalWorkflow(clean, StageWorkflowID(t.Brief.StageKey), "", SignalMeasured, news).Get(clean, nil); err != nil {
		workflow.GetLogger(ctx).Warn("telling the stage's workflow", "stage_key", t.Brief.StageKey, "error", err)
	}
}

// needsEarlierStage reports whether a trial that waits for a place has to run another stage
// first, as its output was lost.
func (t *trial) needsEarlierStage(ctx workflow.Context) (bool, error) {
	next, err := t.askStage(ctx)

	return next.StageKey != t.Brief.StageKey, err
}

func (t *trial) askStage(ctx workflow.Context) (next activities.StageBrief, err error) {
	err = step(ctx, acts.NextStage, activities.TrialRef{SweepID: t.in.SweepID, Number: t.in.Number}, &next)

	return next, err
}

// nextStage asks the ledger what the trial runs next. What counts for one stage is forgotten
// with it.
func (t *trial) nextStage(ctx workflow.Context) error {
	next, err := t.askStage(ctx)
	if err != nil {
		return err
	}

	if next.Stage == t.Brief.Stage && next.Repeats == t.Brief.Repeats {
		next.NeedsProbe, next.Guessed = t.Brief.NeedsProbe, t.Brief.Guessed
	} else {
		t.leaveStage(ctx, false)
		t.measured(ctx, false)

		t.Before = t.made()
		t.Charged, t.OOMs, t.Last = 0, 0, nil
		t.Carries, t.Short, t.Beside, t.Guessed = false, false, false, false
	}

	t.Brief.StageBrief = next

	return nil
}

// stageEnd is the end of a trial by the failure of one of its stages. One through no fault of the
// stage ends this trial alone.
func (t *trial) stageEnd(end berth.TrialUpdate) berth.TrialUpdate {
	if t.Brief.StageKey == "" || end.State != berth.TrialFailed && end.State != berth.TrialInfeasible {
		return end
	}

	end.Message = fmt.Sprintf("stage %s failed: %s", t.Brief.Stage, end.Message)
	if end.Kind.Policy().Charges {
		end.FailedStage = t.Brief.StageKey
	}

	return end
}
