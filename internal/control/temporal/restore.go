package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// SweepLedger is the database's record of sweeps that have not ended.
type SweepLedger interface {
	activities.TrialLister

	ListSweepRecords(ctx context.Context, states []string, before time.Time, beforeID string, limit int) ([]berth.Sweep, error)
	GetSweep(ctx context.Context, id string) (berth.Sweep, error)
	FirstTrialRan(ctx context.Context, id string) (time.Time, error)
}

// Restored counts the workflows that Restore started.
type Restored struct {
	Sweeps, Trials int // workflows
}

// Restore makes the namespace the installation's by a person's word: after
// Temporal's store was lost, or when the database was restored from a backup.
// Every open sweep without a workflow there gets one that goes on from the
// database's state, and so do its open trials: a running attempt is adopted, an
// ended one is not repeated. The binding comes last, so that no server ends one
// of the sweeps before. Restore may be repeated after it was cut off. It begins
// a history of events: readers of the earlier one read everything again.
func (i *Identity) Restore(ctx context.Context, sweeps SweepLedger) (Restored, error) {
	var done Restored

	ours, err := i.Ledger.Installation(ctx)
	if err != nil {
		return done, err
	}

	there, err := i.Client.bindingOf(ctx, ours)
	if err != nil && !errors.Is(err, errStoreLost) {
		return done, err
	}

	if err := i.Ledger.BeginHistory(ctx); err != nil {
		return done, err
	}

	if err := eachOpenSweep(ctx, sweeps, func(sweep berth.Sweep) error {
		return i.Client.reviveSweep(ctx, sweeps, sweep.ID, &done)
	}); err != nil {
		return done, err
	}

	if there == nil || !there.open {
		if err := i.Client.bind(ctx, ours.ID); err != nil {
			return done, err
		}
	}

	if err := i.Ledger.BindTemporal(ctx); err != nil {
		return done, err
	}

	return done, i.alarm(ctx, "")
}

// eachOpenSweep calls do with every sweep that has not ended, and returns all
// errors: one sweep keeps no other from it.
func eachOpenSweep(ctx context.Context, ledger SweepLedger, do func(berth.Sweep) error) error {
	var (
		all      error
		before   time.Time
		beforeID string
	)

	for {
		sweeps, err := ledger.ListSweepRecords(ctx, openStates, before, beforeID, orphanPage)
		if err != nil {
			return errors.Join(all, err)
		}

		for _, sweep := range sweeps {
			all = errors.Join(all, do(sweep))
			before, beforeID = sweep.CreatedAt, sweep.ID
		}

		if len(sweeps) < orphanPage {
			return all
		}
	}
}

// reviveSweep starts the workflow of a sweep without one, and first the workflows of
// its open trials: the sweep expects them to exist. It does not repeat trials
// that Temporal knows to have completed: Orphans and the sweep end them as they
// ended.
func (c *Client) reviveSweep(ctx context.Context, ledger SweepLedger, sweepID string, done *Restored) error {
	status, err := c.status(ctx, workflows.SweepWorkflowID(sweepID))
	if err != nil || goesOn(status) || status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return err
	}

	sweep, err := ledger.GetSweep(ctx, sweepID)
	if err != nil {
		return err
	}

	began, err := ledger.FirstTrialRan(ctx, sweepID)
	if err != nil {
		return err
	}

	state := workflows.RestoreSweep(sweep, !began.IsZero(), time.Now())

	if err := activities.EachOpenTrial(ctx, ledger, sweepID, func(trial berth.Trial) error {
		state.Open = append(state.Open, trial.Number)

		started, err := c.reviveTrial(ctx, sweep, trial.Number)
		if started {
			done.Trials++
		}

		return err
	}); err != nil {
		return err
	}

	in := workflows.SweepInput{SweepID: sweepID, Restored: true}
	if sweep.State != berth.SweepPending {
		in.Carried = &state
	}

	if err := c.startSweep(ctx, in, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE); err != nil {
		return err
	}

	done.Sweeps++

	if sweep.State == berth.SweepCanceling {
		return c.Cancel(ctx, sweepID)
	}

	return nil
}

// reviveTrial starts the workflow of a trial unless it runs or has completed.
// Attempt ids come from the workflow's id, so it goes through the earlier
// attempts without making any of them again.
func (c *Client) reviveTrial(ctx context.Context, sweep berth.Sweep, number int) (started bool, err error) {
	id := workflows.TrialWorkflowID(sweep.ID, number)

	status, err := c.status(ctx, id)
	if err != nil || goesOn(status) || status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return false, err
	}

	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: c.queue,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            fmt.Sprintf("trial %d of %s", number, sweep.Name),
		TypedSearchAttributes:    workflows.TrialAttributes(sweep.ID),
	}
	in := workflows.TrialInput{SweepID: sweep.ID, Number: number}

	if sweep.State == berth.SweepStopping {
		_, err = c.temporal.SignalWithStartWorkflow(ctx, id, workflows.SignalStop, nil, options, workflows.TrialWorkflow, in)
	} else {
		_, err = c.temporal.ExecuteWorkflow(ctx, options, workflows.TrialWorkflow, in)
	}

	return err == nil, translate(err, fmt.Sprintf("starting trial %d of sweep %s", number, sweep.ID))
}

// startSweep starts the workflow of a sweep unless it runs, or, as reuse says,
// ran.
func (c *Client) startSweep(ctx context.Context, in workflows.SweepInput, reuse enums.WorkflowIdReusePolicy) error {
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       workflows.SweepWorkflowID(in.SweepID),
		TaskQueue:                c.queue,
		WorkflowIDReusePolicy:    reuse,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "hyperparameter sweep " + in.SweepID,
		TypedSearchAttributes:    workflows.SweepAttributes(in.SweepID),
	}, workflows.SweepWorkflow, in)

	if _, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		return nil
	}

	return translate(err, "starting sweep "+in.SweepID)
}
