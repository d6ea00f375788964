package workflows

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// awaitProbe waits until the footprint of the trial's shape is known, or until
// the probe asks this trial to measure it. The signal is a shortcut: a timer
// looks at the footprint and joins the probe again, in case it was lost.
func (t *trial) awaitProbe(ctx workflow.Context) error {
	ref := activities.ProbeRef{
		SweepID: t.in.SweepID, TrialID: t.Brief.TrialID, ShapeKey: t.Brief.ShapeKey, WorkflowID: t.id,
	}

	t.say(ctx, berth.TrialProbing, "waiting for the probe of its shape", attrShapeKey.ValueSet(berth.ShortKey(t.Brief.ShapeKey)))

	for pause := recheckFirst; !t.stopped(); pause = min(2*pause, recheckLongest) {
		if err := step(ctx, acts.JoinProbe, ref, nil); err != nil {
			return err
		}

		var role ProbeRole

		answered := false

		_, err := awaitFor(ctx, pause, "look for the footprint", func() bool {
			answered = answered || t.hearRole(&role)

			return answered || t.stopped()
		})
		if answered { // also when it is canceled: settle tells the probe
			t.take(role)
		}

		if err != nil || answered {
			return err
		}

		known := false
		if err := step(ctx, acts.FootprintKnown, activities.ShapeRef{ShapeKey: t.Brief.ShapeKey}, &known); err != nil || known {
			return err
		}

		if t.historyTooLong(ctx) {
			return t.carryOn(ctx)
		}
	}

	return nil
}

// answerUnreadRoles reads the unread roles from the probe and acts on the last: one answer is for
// all of them. The trial may have been canceled before it read them, or have joined in a
// workflow task that was lost; and the probe repeats its message. A late message does not
// change the trial's past run to a short or a whole one.
func (t *trial) answerUnreadRoles() {
	var role ProbeRole

	heard := false
	for t.hearRole(&role) {
		heard = true
	}

	if !heard {
		return
	}

	t.Brief.ShapeKey = cmp.Or(t.Brief.ShapeKey, role.ShapeKey) // the trial may have ended before it read its own
	if t.Brief.ShapeKey != "" {
		t.noteRole(role)
	}
}

// hearRole reads a role from the probe of the trial's shape. The probe of an earlier stage's
// shape is told that nothing measures it here.
func (t *trial) hearRole(role *ProbeRole) bool {
	for t.probe.ReceiveAsync(role) {
		if t.Brief.ShapeKey == "" || role.ShapeKey == t.Brief.ShapeKey {
			return true
		}

		t.strays = append(t.strays, role.ShapeKey)
	}

	return false
}

// noteRole notes what the probe expects of this trial.
func (t *trial) noteRole(role ProbeRole) {
	t.Beside = role.Beside && !role.Ready
	t.Carries = !role.Ready && !role.Beside
}

// take has the trial play a role: its next run is a short one, or a whole one.
func (t *trial) take(role ProbeRole) {
	t.noteRole(role)
	t.Short = t.Carries && (t.Brief.ProbeMode == berth.ProbeShort || role.Short && t.Brief.ProbeMode == berth.ProbeAuto)
}

// released reports whether a trial that asked for a place beside the probe has
// another role now: its shape is measured, or it measures the shape itself.
func (t *trial) released() bool {
	var role ProbeRole

	for t.Beside && t.hearRole(&role) {
		t.take(role)
	}

	return !t.Beside
}

// measured tells the probe that this trial's run has ended, which may have
// measured the shape, or is taking longer than the probe may. It does nothing
// for a trial that the probe does not wait for.
func (t *trial) measured(ctx workflow.Context, capped bool) {
	if !capped {
		t.answerUnreadRoles()
	}

	shapes := t.strays
	if t.Carries || t.Beside {
		shapes = append(shapes, t.Brief.ShapeKey)
	}

	t.strays = nil

	if !capped {
		t.Carries, t.Beside = false, false
	}

	clean, _ := workflow.NewDisconnectedContext(ctx)
	news := ProbeMeasured{WorkflowID: t.id, Capped: capped}

	for _, shape := range shapes {
		if err := workflow.SignalExternalWorkflow(clean, ProbeWorkflowID(shape), "", SignalMeasured, news).Get(clean, nil); err != nil {
			workflow.GetLogger(ctx).Warn("telling the probe", "shape_key", shape, "error", err)
		}
	}
}
