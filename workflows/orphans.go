package workflows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// OpenLedger is the sweeps and trials that have not ended, and how they do.
type OpenLedger interface {
	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
	ListSweepRecords(ctx context.Context, states []string, before time.Time, beforeID string, limit int) ([]berth.Sweep, error)
	ListTrials(ctx context.Context, sweepID string, states []string, after, limit int) ([]berth.Trial, error)
	SetTrialState(ctx context.Context, u berth.TrialUpdate) (changed bool, err error)
	SetSweepState(ctx context.Context, id string, state berth.SweepState, reason string) (changed bool, err error)
}

const (
	// orphanEvery is how often it is looked: one question to Temporal for each
	// open sweep, and a person who ends one there sees it end here soon.
	orphanEvery = 10 * time.Second
	// orphanPage is how many sweeps or trials are read at once.
	orphanPage = 200
)

// Orphans ends sweeps that are open in the ledger and whose workflow is not
// there any more: a person terminated it in Temporal, it broke, or the database
// was restored from an older copy (reliability.md, failures 9 and 42). Their
// trials' workflows are asked to cancel, which stops containers; a trial whose
// workflow is gone, too, is settled here, which fences its attempt for the
// host to stop. A sweep that is pending and was never started is started.
type Orphans struct {
	Ledger OpenLedger
	Client *Client
	Log    *slog.Logger
}

// Run looks for orphans while it leads, until ctx ends.
func (o *Orphans) Run(ctx context.Context) error {
	return o.Ledger.Lead(ctx, "orphans", func(ctx context.Context) error {
		ticker := time.NewTicker(orphanEvery) //nolint:forbidigo // a loop of the server, not a workflow
		defer ticker.Stop()

		for {
			if err := o.Round(ctx); err != nil && ctx.Err() == nil {
				o.Log.Warn("looking for sweeps without a workflow", "error", err)
			}

			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
		}
	})
}

// openStates are those of a sweep that has not ended.
var openStates = []string{
	string(berth.SweepPending), string(berth.SweepRunning), string(berth.SweepPaused), string(berth.SweepStopping), string(berth.SweepCanceling),
}

// Round looks once at every open sweep. One that cannot be ended now is looked
// at again in the next round.
func (o *Orphans) Round(ctx context.Context) error {
	var (
		all      error
		before   time.Time
		beforeID string
	)

	for {
		sweeps, err := o.Ledger.ListSweepRecords(ctx, openStates, before, beforeID, orphanPage)
		if err != nil {
			return errors.Join(all, err)
		}

		for _, sweep := range sweeps {
			all = errors.Join(all, o.look(ctx, sweep))
			before, beforeID = sweep.CreatedAt, sweep.ID
		}

		if len(sweeps) < orphanPage {
			return all
		}
	}
}

// look ends a sweep whose workflow has ended without it. A workflow writes the
// end of its sweep before its own, so one that is closed will not do it.
func (o *Orphans) look(ctx context.Context, sweep berth.Sweep) error {
	if sweep.State == berth.SweepPending { // nothing has run: start it, if that was lost; one that ran is left as it is
		if err := o.Client.StartSweep(ctx, sweep.ID); err != nil {
			return err
		}
	}

	state, reason, closed, err := o.Client.sweepClosed(ctx, sweep.ID)
	if err != nil || !closed {
		return err
	}

	open, err := o.endTrials(ctx, sweep.ID)
	if err != nil || open > 0 {
		return err // trials whose workflows are being canceled end first
	}

	changed, err := o.Ledger.SetSweepState(ctx, sweep.ID, state, reason)
	if changed {
		o.Log.Warn("ended a sweep without a workflow", "sweep_id", sweep.ID, "state", state, "reason", reason)
	}

	return err
}

var openTrials = []string{
	string(berth.TrialPending), string(berth.TrialProbing), string(berth.TrialWaiting), string(berth.TrialRunning),
}

// endTrials cancels the open trials of a sweep and returns how many are still
// open, because their own workflows end them.
func (o *Orphans) endTrials(ctx context.Context, sweepID string) (open int, err error) {
	for after := 0; ; {
		trials, err := o.Ledger.ListTrials(ctx, sweepID, openTrials, after, orphanPage)
		if err != nil {
			return open, err
		}

		for _, trial := range trials {
			after = trial.Number

			alive, err := o.Client.cancelTrial(ctx, sweepID, trial.Number)
			if err != nil {
				return open, err
			}

			if alive {
				open++

				continue
			}

			if _, err := o.Ledger.SetTrialState(ctx, berth.TrialUpdate{
				TrialID: trial.ID, SweepID: sweepID, Number: trial.Number,
				State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: activities.EndedInTemporal,
			}); err != nil {
				return open, err
			}
		}

		if len(trials) < orphanPage {
			return open, nil
		}
	}
}

// sweepClosed reports whether the workflow of a sweep is not there any more,
// and how its sweep ends then.
func (c *Client) sweepClosed(ctx context.Context, sweepID string) (state berth.SweepState, reason string, closed bool, err error) {
	id := SweepWorkflowID(sweepID)

	status, err := c.status(ctx, id)
	if err != nil || open(status) {
		return "", "", false, err
	}

	switch status {
	case enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED:
		return berth.SweepCanceled, "its workflow is not in Temporal any more; submit the sweep again", true, nil
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return berth.SweepFailed, fmt.Sprintf("its workflow ended in Temporal (%s); the page of %s there says why", status, id), true, nil
	default:
		return berth.SweepCanceled, fmt.Sprintf("its workflow was ended in Temporal (%s)", status), true, nil
	}
}

// cancelTrial asks the workflow of a trial to cancel, and reports whether there
// is one that does.
func (c *Client) cancelTrial(ctx context.Context, sweepID string, number int) (alive bool, err error) {
	closed, err := c.TrialClosed(ctx, sweepID, number)
	if err != nil || closed {
		return false, err
	}

	err = translate(c.temporal.CancelWorkflow(ctx, TrialWorkflowID(sweepID, number), ""), fmt.Sprintf("canceling trial %d of sweep %s", number, sweepID))
	if berth.KindOf(err) == berth.KindNotFound { // it ended meanwhile; the next round sees how
		return true, nil
	}

	return err == nil, err
}
