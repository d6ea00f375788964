package workflows

import (
	"time"

	"github.com/berthml/berth"
)

// RestoreSweep is what the workflow of a sweep would remember, as far as the
// database knows it; open trials are the caller's to add. ran says whether a
// trial has run. Then limits.max_duration counts anew from now on: nothing says
// how long the sweep was paused or had no workflow, and a clock that counts that
// ends it at once. What a sweep thinks of its first trials is lost: it does not
// pause itself again.
func RestoreSweep(sweep berth.Sweep, ran bool, now time.Time) CarriedState {
	n := sweep.Counts
	state := CarriedState{
		StartedAt: sweep.CreatedAt, Created: n.Total,
		Succeeded: n.Succeeded, Failed: n.Failed, Infeasible: n.Infeasible, Canceled: n.Canceled,
		Paused: sweep.State == berth.SweepPaused, Best: sweep.BestValue, BestTrial: sweep.BestTrial,
		Doubt: Doubt{Told: n.Finished() > 0},
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
