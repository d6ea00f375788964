package runtrial

import (
	"fmt"
	"os"

	"github.com/berthml/berth"
)

// RemoveOutputs removes all files of an attempt and the checkpoints of its
// trial, which the user has deleted. Those that are gone already are a success.
// Errors: conflict while the executor is at the attempt.
func (e *Executor) RemoveOutputs(r berth.OutputRemoval) error {
	if e.Busy(r.AttemptID) {
		return berth.Errorf(berth.KindConflict, "removing files of attempt %s: it runs", r.AttemptID)
	}

	d := e.dirs(berth.Assignee{Attempt: berth.Attempt{ID: r.AttemptID}, Trial: berth.Trial{ID: r.TrialID}})

	for _, dir := range []string{d.attempt, d.checkpoint} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing files of attempt %s: %w", r.AttemptID, err)
		}
	}

	return nil
}
