package runtrial

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berthml/berth"
)

// RemoveOutputs removes all files of an attempt and the checkpoints of its
// trial. Those that are gone already are a success.
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

// MeasureOutputs returns what the files of all attempts and the checkpoints of
// all trials take on the disk, in bytes, and remembers it.
func (e *Executor) MeasureOutputs(ctx context.Context) (int64, error) {
	total, err := measure(ctx, e.attemptsDir(), e.checkpointsDir())
	if err == nil {
		e.outputBytes.Store(total)
	}

	return total, err
}

// OutputBytes is what MeasureOutputs found last; 0 before.
func (e *Executor) OutputBytes() int64 { return e.outputBytes.Load() }

// MeasureTrial is MeasureOutputs for the attempts of one trial.
func (e *Executor) MeasureTrial(ctx context.Context, t berth.TrialOutputs) (int64, error) {
	dirs := []string{filepath.Join(e.checkpointsDir(), t.TrialID)}
	for _, id := range t.AttemptIDs {
		dirs = append(dirs, filepath.Join(e.attemptsDir(), id))
	}

	return measure(ctx, dirs...)
}

// measure returns what the directories take on the disk, like dirs.larger. What
// goes meanwhile, or cannot be read, counts as empty.
func measure(ctx context.Context, dirs ...string) (total int64, err error) {
	for _, dir := range dirs {
		if err := walkBelow(dir, func(info fs.FileInfo) error {
			total += max(diskBytes(info), entryBytes)

			return ctx.Err()
		}); err != nil {
			return 0, fmt.Errorf("measuring the files below %q: %w", dir, err)
		}
	}

	return total, nil
}
