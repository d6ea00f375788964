package temporal

import (
	"context"
	"errors"
	"time"

	"github.com/berthml/berth"
)

const (
	// silence is how long a trial has neither a request nor an attempt before
	// Orphans looks up its workflow: a step between two of them takes a moment.
	silence = time.Minute
	// silentPage is how many are looked up in a round. A trial that waits for a
	// probe counts as silent.
	silentPage = 20
)

// endSilent ends open trials as their workflows did. A workflow writes the end
// of its trial before its own, but the database may have been restored from
// before that. A trial whose workflow Temporal does not know is its sweep's to
// start.
func (o *Orphans) endSilent(ctx context.Context) error {
	trials, err := o.Ledger.SilentTrials(ctx, o.asked, silence, silentPage)
	if err != nil {
		return err
	}

	o.asked = berth.Trial{} // from the first again
	if len(trials) == silentPage {
		o.asked = trials[silentPage-1]
	}

	for _, trial := range trials {
		err = errors.Join(err, o.endAsItsWorkflow(ctx, trial))
	}

	return err
}

func (o *Orphans) endAsItsWorkflow(ctx context.Context, trial berth.Trial) error {
	run, err := o.Client.TrialRun(ctx, trial.SweepID, trial.Number)
	if err != nil || !run.Known || run.Open {
		return err
	}

	end := run.End()
	end.TrialID, end.SweepID, end.Number = trial.ID, trial.SweepID, trial.Number

	changed, err := o.Ledger.SetTrialState(ctx, end)
	if changed {
		o.Log.Info("ended a trial as its workflow did", "sweep_id", trial.SweepID, "trial", trial.Number, "state", end.State)
	}

	return err
}
