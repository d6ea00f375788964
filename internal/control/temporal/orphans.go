package temporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/workflows"
)

// OpenLedger is the sweeps and trials that have not ended, and how they do.
type OpenLedger interface {
	SweepLedger
	activities.Suggester

	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
	SetTrialState(ctx context.Context, u berth.TrialUpdate) (changed bool, err error)
	SetSweepState(ctx context.Context, id string, state berth.SweepState, reason string) (changed bool, err error)
	FollowSweepRun(ctx context.Context, id, known, runID string) (followed bool, err error)
	SilentTrials(ctx context.Context, after berth.Trial, silent time.Duration, limit int) ([]berth.Trial, error)
	// NoteRound tells health how a round of the loop ended.
	NoteRound(ctx context.Context, part string, err error)
}

const (
	// orphanEvery is the time between two looks: each costs Temporal one
	// question for each open sweep, and a person who ends one there should see
	// it end here soon.
	orphanEvery = 10 * time.Second
	// orphanPage is how many sweeps are read at once.
	orphanPage = 200
)

// Orphans ends sweeps that are open in the ledger without a workflow: a person
// terminated it in Temporal, it broke, or the database was restored from an
// older copy (reliability.md, failures 9 and 42). Orphans asks their trials'
// workflows to cancel, which stops containers. It settles a trial without a
// workflow itself, which fences its attempt for the host to stop. It starts a
// pending sweep that was never started.
//
// It ends a few at most. When many are gone at once, or Temporal does not know
// an open one, the fault is more likely Temporal's than theirs: Orphans raises
// an alarm for a person, and judges none until all of them exist again.
type Orphans struct {
	Ledger   OpenLedger
	Identity *Identity
	Client   *Client
	Log      *slog.Logger

	asked berth.Trial // the silent trial that was looked up last
}

// Run looks for orphans while it leads, until ctx ends.
func (o *Orphans) Run(ctx context.Context) error {
	return o.Ledger.Lead(ctx, "orphans", func(ctx context.Context) error {
		return repeat(ctx, func() error {
			err := o.Round(ctx)
			if err != nil && ctx.Err() == nil {
				o.Log.Warn("looking for sweeps without a workflow", "error", err)
			}

			o.Ledger.NoteRound(ctx, health.PartWorkflows, err)

			return nil
		})
	})
}

// openStates are the states of a sweep that has not ended.
var openStates = []string{
	string(berth.SweepPending), string(berth.SweepRunning), string(berth.SweepPaused), string(berth.SweepStopping), string(berth.SweepCanceling),
}

// endedAtOnce is how many sweeps a person ends in Temporal within one round,
// by hand. Ten of them at once are no person's doing.
const endedAtOnce = 3

// orphan is an open sweep whose workflow has ended without it, and how its
// sweep ends then.
type orphan struct {
	sweep  berth.Sweep
	state  berth.SweepState
	reason string
	gone   bool // Temporal knows nothing of it
	told   bool // its workflow says that it ended so: nothing is judged
	made   int  // trials known to its workflow, when it reports them
}

// Round looks once at every open sweep. The next round retries a sweep that
// cannot be ended now.
func (o *Orphans) Round(ctx context.Context) error {
	ours, err := o.Identity.Ledger.Installation(ctx) // before the sweeps: the end of Adopt, which brings them back, empties the alarm
	if err != nil {
		return err
	}

	looked := 0

	var orphans []orphan

	err = eachOpenSweep(ctx, o.Ledger, func(sweep berth.Sweep) error {
		looked++

		found, err := o.findOrphan(ctx, sweep)
		if found != nil {
			orphans = append(orphans, *found)
		}

		return err
	})

	// Asked after the sweeps: a store that knows the installation now was not
	// an empty one when it knew nothing of a sweep.
	bound, checked := o.Identity.Check(ctx)
	if checked != nil || !bound {
		return errors.Join(err, checked)
	}

	believed, alarm := judgeOrphans(orphans, looked, ours.Alarm != "")
	if err != nil && alarm == "" {
		alarm = ours.Alarm // it covers sweeps that this round may not have seen
	}

	err = errors.Join(err, o.Identity.alarm(ctx, alarm))

	for _, orphan := range believed {
		err = errors.Join(err, o.endSweep(ctx, orphan))
	}

	if alarm != "" {
		return err
	}

	return errors.Join(err, o.endSilent(ctx))
}

// judgeOrphans returns the sweeps to end: sweeps judged before, sweeps whose own
// workflow says how they ended, and a few that a person ended in Temporal. The
// others are an alarm: Temporal forgets no running workflow, so an unknown one,
// or many at once, mean that its store was replaced. During an alarm none counts
// as ended by a person: Adopt may have brought back a part. looked is how many
// sweeps are open.
func judgeOrphans(orphans []orphan, looked int, alarmed bool) (believed []orphan, alarm string) {
	var ended, gone []orphan

	for _, orphan := range orphans {
		switch {
		case orphan.told || orphan.sweep.State == berth.SweepCanceling:
			looked--

			believed = append(believed, orphan)
		case orphan.gone:
			gone = append(gone, orphan)
		default:
			ended = append(ended, orphan)
		}
	}

	fresh := len(ended) + len(gone)
	if fresh == 0 || len(gone) == 0 && fresh <= endedAtOnce && !alarmed {
		return append(believed, ended...), ""
	}

	return believed, fmt.Sprintf("%d of %d open sweeps have no workflow in Temporal any more, such as %s: "+
		"Berth ends none of them, and containers go on", fresh, looked, berth.ShortKey(append(gone, ended...)[0].sweep.ID))
}

// findOrphan returns a sweep whose workflow has ended without it; nil = it goes on. A
// workflow writes the end of its sweep before its own, so a closed one will not
// do it.
func (o *Orphans) findOrphan(ctx context.Context, sweep berth.Sweep) (*orphan, error) {
	if sweep.State == berth.SweepPending && o.Identity.Bound() { // nothing has run: start it, if the start was lost; a workflow that ran stays as it is
		if err := o.Client.StartSweep(ctx, sweep.ID); err != nil {
			return nil, err
		}
	}

	got, err := o.Client.describe(ctx, workflows.SweepWorkflowID(sweep.ID))
	if err != nil {
		return nil, err
	}

	if info := got.GetWorkflowExecutionInfo(); goesOn(info.GetStatus()) {
		return nil, o.follow(ctx, sweep, info.GetExecution().GetRunId())
	}

	return o.Client.sweepClosed(ctx, sweep, got.GetWorkflowExecutionInfo().GetStatus())
}

// follow notes the run of a sweep that Temporal knows: a database that was
// restored from before it began would let no trial that an earlier run started
// tell it of its end.
func (o *Orphans) follow(ctx context.Context, sweep berth.Sweep, runID string) error {
	if sweep.RunID == runID {
		return nil
	}

	followed, err := o.Ledger.FollowSweepRun(ctx, sweep.ID, sweep.RunID, runID)
	if followed {
		o.Log.Info("followed a sweep to the run that carries it on", "sweep_id", sweep.ID, "run_id", runID)
	}

	return err
}

// endSweep ends a sweep, once its trials have ended. That takes several rounds:
// until then the sweep's state says that it was judged.
func (o *Orphans) endSweep(ctx context.Context, orphan orphan) error {
	id := orphan.sweep.ID

	if orphan.sweep.State != berth.SweepCanceling {
		if _, err := o.Ledger.SetSweepState(ctx, id, berth.SweepCanceling, orphan.reason); err != nil {
			return err
		}
	}

	if err := activities.FillTrials(ctx, o.Ledger, id, orphan.made); err != nil {
		return err
	}

	open, err := o.endTrials(ctx, id)
	if err != nil || open > 0 {
		return err // trials whose workflows are being canceled end first
	}

	changed, err := o.Ledger.SetSweepState(ctx, id, orphan.state, orphan.reason)
	if changed {
		o.Log.Warn("ended a sweep without a workflow", "sweep_id", id, "state", orphan.state, "reason", orphan.reason)
	}

	return err
}

// endTrials cancels the open trials of a sweep and returns how many are still
// open, because their own workflows end them.
func (o *Orphans) endTrials(ctx context.Context, sweepID string) (open int, err error) {
	err = activities.EachOpenTrial(ctx, o.Ledger, sweepID, func(trial berth.Trial) error {
		end, err := o.Client.TrialEnd(ctx, sweepID, trial.Number)
		if err != nil {
			return err
		}

		if end == nil {
			open++

			return o.Client.cancelTrial(ctx, sweepID, trial.Number)
		}

		end.TrialID = trial.ID
		_, err = o.Ledger.SetTrialState(ctx, *end)

		return err
	})

	return open, err
}

// sweepClosed returns a sweep whose workflow is not there any more, and has that
// status.
func (c *Client) sweepClosed(ctx context.Context, sweep berth.Sweep, status enums.WorkflowExecutionStatus) (*orphan, error) {
	id := workflows.SweepWorkflowID(sweep.ID)
	o := &orphan{sweep: sweep, state: berth.SweepCanceled}

	switch status {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED: // the database was restored from before its end
		var end workflows.SweepView
		if err := c.temporal.GetWorkflow(ctx, id, "").Get(ctx, &end); err != nil {
			return nil, translate(err, "reading the result of "+id)
		}

		o.state, o.made, o.told, o.reason = end.State, end.Created, true, "ended as its workflow did, which had completed; the database did not know"
	case enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED:
		o.gone, o.reason = true, "its workflow is not in Temporal any more"
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		o.state, o.reason = berth.SweepFailed, fmt.Sprintf("its workflow ended in Temporal (%s); the page of %s there says why", status, id)
	default:
		o.reason = fmt.Sprintf("its workflow was ended in Temporal (%s)", status)
	}

	return o, nil
}

// cancelTrial asks the workflow of a trial to cancel. The next round sees one
// that has ended.
func (c *Client) cancelTrial(ctx context.Context, sweepID string, number int) error {
	err := translate(c.temporal.CancelWorkflow(ctx, workflows.TrialWorkflowID(sweepID, number), ""), fmt.Sprintf("canceling trial %d of sweep %s", number, sweepID))
	if berth.KindOf(err) == berth.KindNotFound {
		return nil
	}

	return err
}
