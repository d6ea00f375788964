package activities

import (
	"context"

	"github.com/berthml/berth"
)

// openPage is how many open trials are read at once.
const openPage = 200

// TrialLister lists trials of a sweep by number, after the given one.
type TrialLister interface {
	ListTrials(ctx context.Context, sweepID string, states []string, after, limit int) ([]berth.Trial, error)
}

// EachOpenTrial calls do with every trial of a sweep that has not ended, by
// number, until it fails.
func EachOpenTrial(ctx context.Context, ledger TrialLister, sweepID string, do func(berth.Trial) error) error {
	for after := 0; ; {
		trials, err := ledger.ListTrials(ctx, sweepID, berth.OpenTrialStates(), after, openPage)
		if err != nil {
			return err
		}

		for _, trial := range trials {
			after = trial.Number

			if err := do(trial); err != nil {
				return err
			}
		}

		if len(trials) < openPage {
			return nil
		}
	}
}
