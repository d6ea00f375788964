package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// execute runs the placed attempt on its host.
func (t *trial) execute(ctx workflow.Context, p berth.PlacementStatus) (berth.Outcome, error) {
	var a *activities.Activities

	summary := fmt.Sprintf("attempt %d on %s with %s", t.attempts, p.HostName, demandText(p.Demand))
	t.say(ctx, berth.TrialRunning, summary, attrShapeKey.ValueSet(berth.ShortKey(t.brief.ShapeKey)),
		attrHostID.ValueSet(p.HostID), attrDeviceID.ValueSet(p.DeviceID))

	var outcome berth.Outcome

	order := activities.Order{AttemptID: p.AttemptID, Token: p.Token, Short: t.short}

	if ctx.Err() != nil { // canceled while it was being placed: run it to have it stopped and its lease freed
		return t.release(ctx, p, order)
	}

	running := workflow.ExecuteActivity(onHost(ctx, p.HostID, summary, t.brief), a.RunTrial, order)

	if t.carries && !t.short && t.brief.ProbeMode == berth.ProbeAuto {
		t.watchCap(ctx, running)
	}

	err := running.Get(ctx, &outcome)
	if err != nil && ctx.Err() != nil && !temporal.IsCanceledError(err) {
		if _, told := activities.OutcomeOf(err); !told {
			// Canceled, and the host could not stop it at once: Temporal does not
			// repeat a canceled activity, so the place is given back by another.
			return t.release(ctx, p, order)
		}
	}

	if unheld(err) && workflow.GetVersion(ctx, changeUnheld, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return t.releaseUnheld(ctx, p, order)
	}

	return t.outcomeOf(ctx, p, outcome, err)
}

// release has the host give back a lease that was won after cancellation.
func (t *trial) release(ctx workflow.Context, p berth.PlacementStatus, order activities.Order) (berth.Outcome, error) {
	outcome, err := t.orderStop(ctx, p, order, time.Duration(t.brief.HostPatience))
	clean, _ := workflow.NewDisconnectedContext(ctx)

	return t.outcomeOf(clean, p, outcome, err)
}

// releaseUnheld has the host give back the place of an attempt that was canceled
// before a worker had it. A host that does not answer is not waited for: its
// reconciler does the same when it is back.
func (t *trial) releaseUnheld(ctx workflow.Context, p berth.PlacementStatus, order activities.Order) (berth.Outcome, error) {
	outcome, err := t.orderStop(ctx, p, order, min(answerPatience, time.Duration(t.brief.HostPatience)))
	if _, timeout := errors.AsType[*temporal.TimeoutError](err); timeout || unheld(err) {
		return canceledUnheld(p), nil
	}

	clean, _ := workflow.NewDisconnectedContext(ctx)

	return t.outcomeOf(clean, p, outcome, err)
}

// orderStop has the host stop what runs of an attempt, and give its place back.
// A cancellation does not end it.
func (t *trial) orderStop(ctx workflow.Context, p berth.PlacementStatus, order activities.Order, patience time.Duration) (berth.Outcome, error) {
	var (
		a       *activities.Activities
		outcome berth.Outcome
	)

	order.Stop = true
	clean, _ := workflow.NewDisconnectedContext(ctx)

	brief := t.brief
	brief.HostPatience = berth.Duration(patience)
	err := workflow.ExecuteActivity(onHost(clean, p.HostID, "give back a place that is not wanted any more", brief), a.RunTrial, order).
		Get(clean, &outcome)

	return outcome, err
}

// unheld reports whether Temporal itself canceled an activity, because no worker
// had it: there is no outcome.
func unheld(err error) bool {
	_, told := activities.OutcomeOf(err)

	return temporal.IsCanceledError(err) && !told
}

func canceledUnheld(p berth.PlacementStatus) berth.Outcome {
	return berth.Outcome{Kind: berth.FailureCanceled, Message: fmt.Sprintf("canceled while no worker of host %s had the attempt; "+
		"if its container is there, it is stopped when the worker is back", p.HostName)}
}

// outcomeOf reads what became of the activity. An attempt without an outcome,
// because its host does not answer or could not carry it out, is closed in the
// ledger before the next one asks for a place: a trial has one live attempt.
func (t *trial) outcomeOf(ctx workflow.Context, p berth.PlacementStatus, outcome berth.Outcome, err error) (berth.Outcome, error) {
	o, told := activities.OutcomeOf(err)

	var timeout *temporal.TimeoutError

	switch {
	case err == nil:
		return outcome, nil
	case errors.As(err, &timeout):
		return t.abandon(ctx, p, fmt.Sprintf("host %s did not answer (%s); the attempt goes elsewhere", p.HostName, timeout.TimeoutType()), false)
	case unheld(err):
		return canceledUnheld(p), nil
	}

	if told {
		return o, nil
	}

	if workflow.GetVersion(ctx, changeAbandonFailed, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return berth.Outcome{Kind: berth.FailureInfra, Message: err.Error()}, nil
	}

	return t.abandon(ctx, p, fmt.Sprintf("host %s could not carry the attempt out: %s", p.HostName, reasonOf(err)), true)
}

// abandon fences an attempt that has no outcome, so that another may follow.
// Its memory stays booked until there is proof that it is free.
func (t *trial) abandon(ctx workflow.Context, p berth.PlacementStatus, message string, refused bool) (berth.Outcome, error) {
	var (
		a         *activities.Activities
		abandoned activities.Abandoned
	)

	clean, _ := workflow.NewDisconnectedContext(ctx)

	in := activities.AbandonInput{AttemptID: p.AttemptID, Message: message, Refused: refused}
	if err := workflow.ExecuteLocalActivity(steps(clean), a.AbandonAttempt, in).Get(clean, &abandoned); err != nil {
		return berth.Outcome{}, err
	}

	if abandoned.Finished != nil { // only Temporal did not hear of it
		return *abandoned.Finished, nil
	}

	t.away = !refused

	return berth.Outcome{Kind: berth.FailureInfra, Message: message}, nil
}

// reasonOf is the text of an activity's error without Temporal's own words
// around it.
func reasonOf(err error) string {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app.Message()
	}

	return err.Error()
}

// watchCap tells the probe when its carrier runs longer than the cap, so that
// a short probe goes beside it.
func (t *trial) watchCap(ctx workflow.Context, running workflow.Future) {
	limit := time.Duration(t.brief.ProbeMaxDuration)

	ended, err := awaitFor(ctx, limit, "probe.max_duration", running.IsReady)
	if err == nil && !ended {
		t.measured(ctx, true)
	}
}
