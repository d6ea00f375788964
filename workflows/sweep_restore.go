package workflows

import (
	"time"

	"github.com/berthml/berth"
)

// RestoreSweep is the state that a sweep's workflow would carry, as far as the
// database knows it; the caller adds open trials. ran says whether a trial has
// run. If so, limits.max_duration counts again from now on: the time without a
// workflow or in a pause is unknown, and counting it could end the sweep at
// once. The counts of the first trials are lost: the sweep does not pause itself
// again.
func RestoreSweep(sweep berth.Sweep, ran bool, now time.Time) CarriedState {
	n := sweep.Counts
	state := CarriedState{
		StartedAt: sweep.CreatedAt, Created: n.Total,
		Succeeded: n.Succeeded, Failed: n.Failed, Infeasible: n.Infeasible, Canceled: n.Canceled, Pruned: n.Pruned,
		Paused: sweep.State == berth.SweepPaused, Best: sweep.BestValue, BestTrial: sweep.BestTrial,
		Streak: FailureStreak{Told: n.Finished() > 0},
	}

	if ran {
		state.Clock.Began = now
	}

	if sweep.StartedAt != nil {
		state.StartedAt = *sweep.StartedAt
	}

	if sweep.State == berth.SweepStopping {
		state.Ending = Ending{State: berth.SweepStopped, Reason: sweep.Reason}
	}

	if state.Paused {
		state.Clock.pause(now)
	}

	return state
}
