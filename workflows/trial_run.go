package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// execute runs the placed attempt on its host.
func (t *trial) execute(ctx workflow.Context, p berth.PlacementStatus) (berth.Outcome, error) {
	summary := fmt.Sprintf("attempt %d on %s with %s", t.Attempts, p.HostName, demandText(p.Demand))
	t.say(ctx, berth.TrialRunning, summary, attrShapeKey.ValueSet(berth.ShortKey(t.Brief.ShapeKey)),
		attrHostID.ValueSet(p.HostID), attrDeviceID.ValueSet(p.DeviceID))

	var outcome berth.Outcome

	order := berth.Order{AttemptID: p.AttemptID, Token: p.Token, Short: t.Short}

	if ctx.Err() != nil { // canceled while it was being placed: run it to have it stopped and its lease freed
		return t.release(ctx, p, order)
	}

	running := workflow.ExecuteActivity(onHost(ctx, p.HostID, summary, t.Brief), acts.RunTrial, order)

	if t.Carries && !t.Short && t.Brief.ProbeMode == berth.ProbeAuto {
		t.watchCap(ctx, running)
	}

	err := running.Get(ctx, &outcome)
	if err == nil {
		return outcome, nil
	}

	outcome, told := activities.OutcomeOf(err)
	timeout, timedOut := errors.AsType[*temporal.TimeoutError](err)

	switch {
	case !told && (ctx.Err() != nil || temporal.IsCanceledError(err)):
		// No worker had it, or the host could not stop it at once: Temporal does not
		// repeat a canceled activity, so another activity gives the place back.
		return t.release(ctx, p, order)
	case timedOut:
		return t.abandon(ctx, p, fmt.Sprintf("host %s did not answer (%s); the attempt goes elsewhere", p.HostName, timeout.TimeoutType()), false)
	case told:
		return outcome, nil
	default:
		return t.abandon(ctx, p, fmt.Sprintf("host %s could not carry the attempt out: %s", p.HostName, reasonOf(err)), true)
	}
}

// release makes the host stop the container of a canceled attempt, and give its place
// back. It does not wait long for the host: its reconciler does the same when it can.
func (t *trial) release(ctx workflow.Context, p berth.PlacementStatus, order berth.Order) (berth.Outcome, error) {
	var outcome berth.Outcome

	order.Stop = true
	clean, _ := workflow.NewDisconnectedContext(ctx) // a cancellation does not end it

	brief := t.Brief
	brief.HostPatience = min(brief.HostPatience, berth.Duration(answerPatience))
	host := workflow.WithScheduleToCloseTimeout(onHost(clean, p.HostID, "give back a place that is not wanted any more", brief), releasePatience)

	err := workflow.ExecuteActivity(host, acts.RunTrial, order).Get(clean, &outcome)
	if err == nil {
		return outcome, nil
	}

	if o, told := activities.OutcomeOf(err); told {
		return o, nil
	}

	message := fmt.Sprintf("canceled; host %s could not give the place back yet: %s. It does so when it can, and stops the container if that is there",
		p.HostName, reasonOf(err))

	outcome, _, err = t.fence(clean, activities.AbandonInput{AttemptID: p.AttemptID, Message: message, Refused: true}, berth.FailureCanceled)

	return outcome, err
}

// abandon fences an attempt that has no outcome, before the next one asks for a place: a trial
// has one live attempt. Its memory stays booked until there is proof that it is free.
func (t *trial) abandon(ctx workflow.Context, p berth.PlacementStatus, message string, refused bool) (berth.Outcome, error) {
	clean, _ := workflow.NewDisconnectedContext(ctx)

	outcome, fenced, err := t.fence(clean, activities.AbandonInput{AttemptID: p.AttemptID, Message: message, Refused: refused}, berth.FailureInfra)
	if fenced {
		t.Away = !refused
	}

	return outcome, err
}

// fence closes an attempt in the ledger, which then ends as the kind says; fenced is false
// where its host had committed an outcome before, and only Temporal did not get it.
func (t *trial) fence(ctx workflow.Context, in activities.AbandonInput, kind berth.FailureKind) (outcome berth.Outcome, fenced bool, err error) {
	var abandoned activities.Abandoned

	if err := step(ctx, acts.AbandonAttempt, in, &abandoned); err != nil {
		return berth.Outcome{}, false, err
	}

	if abandoned.Finished != nil {
		return *abandoned.Finished, false, nil
	}

	return berth.Outcome{Kind: kind, Message: in.Message}, true, nil
}

// reasonOf is the text of an activity's error without Temporal's own words
// around it.
func reasonOf(err error) string {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app.Message()
	}

	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		if timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START {
			return "no worker of it answers"
		}

		return "it took too long"
	}

	return err.Error()
}

// watchCap tells the probe when its carrier runs longer than the cap, so that
// a short probe goes beside it.
func (t *trial) watchCap(ctx workflow.Context, running workflow.Future) {
	limit := time.Duration(t.Brief.ProbeMaxDuration)

	ended, err := awaitFor(ctx, limit, "probe.max_duration", running.IsReady)
	if err == nil && !ended {
		t.measured(ctx, true)
	}
}
