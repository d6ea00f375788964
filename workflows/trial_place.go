package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// placing is a place, or the end of the trial for want of one.
type placing struct {
	status berth.PlacementStatus
	asked  berth.Demand
	end    *berth.TrialUpdate
	lost   bool // it was withdrawn, as the output of an earlier stage is gone, or another trial runs the stage
}

// place asks for a place and waits for it. The signal is a shortcut: a timer
// looks at the request too, less and less often.
func (t *trial) place(ctx workflow.Context) (placing, error) {
	in := activities.PlaceInput{
		SweepID: t.in.SweepID, Trial: t.in.Number, WorkflowID: t.id,
		AttemptID: AttemptID(t.id, t.Attempts), Number: t.Attempts, Stage: t.Brief.Stage, Purpose: t.purpose(), Short: t.Short, Last: t.Last,
	}

	result, err := t.requestPlace(ctx, in)
	if err != nil {
		return placing{}, err
	}

	if result.Infeasible {
		return placing{end: t.infeasible(result.Asked)}, nil
	}

	t.say(ctx, berth.TrialWaiting, "waiting for a place: "+demandText(result.Asked))

	status, err := t.awaitPlacement(ctx, in, result.Status)
	if err != nil {
		return placing{}, err
	}

	switch status.State {
	case berth.RequestWithdrawn:
		if t.inputLost || t.yielding && !t.stopped() {
			t.leaveStage(ctx, true)

			return placing{lost: true}, nil
		}
	case berth.RequestPlaced:
		return placing{status: status, asked: status.Demand}, nil
	case berth.RequestImpossible:
		return placing{end: &berth.TrialUpdate{
			State: berth.TrialInfeasible, Kind: berth.FailureTooBig,
			Message: "no machine could ever hold it: " + firstOf(status.Reasons),
		}}, nil
	default:
	}

	end := t.notStarted()

	return placing{end: &end}, nil
}

// requestPlace puts the request to the ledger. An existing one answers with its state.
func (t *trial) requestPlace(ctx workflow.Context, in activities.PlaceInput) (result activities.PlaceResult, err error) {
	err = step(ctx, acts.RequestPlacement, in, &result)

	return result, err
}

// askAgain puts a request once more that a restored database does not know.
func (t *trial) askAgain(ctx workflow.Context, in activities.PlaceInput) (berth.PlacementStatus, error) {
	result, err := t.requestPlace(ctx, in)
	if err == nil && result.Infeasible {
		result.Status.State = berth.RequestImpossible
	}

	return result.Status, err
}

// notFound reports whether the ledger lacks the object of a step.
func notFound(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)

	return ok && app.Type() == string(berth.KindNotFound)
}

func (t *trial) awaitPlacement(ctx workflow.Context, in activities.PlaceInput, status berth.PlacementStatus) (berth.PlacementStatus, error) {
	ref := activities.AttemptRef{AttemptID: in.AttemptID}
	check := func(ctx workflow.Context, do any) error { return step(ctx, do, ref, &status) }
	t.inputLost, t.yielding = false, false

	for pause := recheckFirst; status.State == berth.RequestWaiting; pause = min(2*pause, recheckLongest) {
		signaled, unmeasured, stopped := false, t.Beside, t.stopped()

		_, err := awaitFor(ctx, pause, "look at the placement request", func() bool {
			signaled = signaled || t.placed.ReceiveAsync(nil)

			return signaled || t.yields() || (t.stopped() && !t.Away) || (unmeasured && t.released()) || (t.Away && t.stopped() && !stopped)
		})
		if err != nil { // canceled: the request must not be placed any more
			clean, _ := workflow.NewDisconnectedContext(ctx)
			if withdrawn := check(clean, acts.WithdrawPlacement); withdrawn != nil {
				return status, withdrawn
			}

			if status.State != berth.RequestPlaced {
				return status, err
			}

			return status, nil // its activity is canceled at once, which frees the lease on proof
		}

		if t.Away && t.stopped() && !stopped && !signaled {
			pause = recheckFirst / 2 // the host has a minute from now

			continue
		}

		switch {
		case t.stopped() && !t.Away, t.yielding:
			err = check(ctx, acts.WithdrawPlacement)
		case unmeasured && !t.Beside:
			status, err = t.resize(ctx, in)
		default:
			err = check(ctx, acts.CheckPlacement)
		}

		if notFound(err) {
			status, err = t.askAgain(ctx, in)
		}

		if err != nil {
			return status, err
		}

		if status.State == berth.RequestWaiting && t.Brief.Staged && !signaled {
			if t.inputLost, err = t.needsEarlierStage(ctx); err == nil && t.inputLost {
				err = check(ctx, acts.WithdrawPlacement)
			}

			if err != nil {
				return status, err
			}
		}

		t.Away = t.Away && !t.stopped() // its host had a whole pause to come back

		if status.State == berth.RequestWaiting && t.historyTooLong(ctx) {
			t.Attempts-- // the next run asks for the same attempt, whose request exists

			return status, t.carryOn(ctx)
		}
	}

	return status, nil
}

// historyTooLong reports whether the run's history is long enough that the next one should go
// on. Unread signals, and a cancellation, would be lost with this one.
func (t *trial) historyTooLong(ctx workflow.Context) bool {
	return longHistory(ctx) && !t.stopped() && t.placed.Len() == 0 && t.probe.Len() == 0 && ctx.Err() == nil
}

// carryOn has the next run of the workflow go on from where it waits.
func (t *trial) carryOn(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, TrialWorkflow, TrialInput{SweepID: t.in.SweepID, Number: t.in.Number, Carried: &t.CarriedTrial})
}

// resize makes a request that waits at the unmeasured size ask for the measured
// need.
func (t *trial) resize(ctx workflow.Context, in activities.PlaceInput) (berth.PlacementStatus, error) {
	var result activities.PlaceResult

	in.Purpose, in.Short = t.purpose(), t.Short

	err := step(ctx, acts.ResizePlacement, in, &result)
	if err == nil && result.Status.State == berth.RequestWaiting {
		t.say(ctx, berth.TrialWaiting, "waiting for a place: "+demandText(result.Asked))
	}

	return result.Status, err
}
