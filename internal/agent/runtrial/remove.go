package runtrial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthml/berth"
)

// RemoveOutputs removes all files of an attempt and the checkpoints of its
// trial. Those that are gone already are a success.
// Errors: conflict while the executor is at the attempt.
func (e *Executor) RemoveOutputs(r berth.OutputRemoval) error {
	if e.Busy(r.AttemptID) {
		return berth.Errorf(berth.KindConflict, "removing files of attempt %s: it runs", r.AttemptID)
	}

	var (
		checkpoint = e.checkpointDir(r.TrialID, berth.StageMain)
		all        error
	)

	for _, dir := range []string{filepath.Join(e.attemptsDir(), r.AttemptID), checkpoint, checkpoint + ofStages} {
		if err := os.RemoveAll(dir); err != nil {
			all = errors.Join(all, fmt.Errorf("removing files of attempt %s: %w", r.AttemptID, err))
		}
	}

	return all
}

// OpenOutputs opens what an attempt wrote to /trial/out. No link leads out of it.
// Errors: conflict while the executor is at the attempt; not_found when the
// directory is not there.
func (e *Executor) OpenOutputs(attemptID string) (*os.Root, error) {
	if e.Busy(attemptID) {
		return nil, berth.Errorf(berth.KindConflict, "opening files of attempt %s: it runs", attemptID)
	}

	root, err := os.OpenRoot(e.dirs(berth.Assignee{Attempt: berth.Attempt{ID: attemptID}}).out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, berth.Errorf(berth.KindNotFound, "opening files of attempt %s: %w", attemptID, err)
	}

	return root, err
}

// MeasureOutputs returns what the files of all attempts and the checkpoints of
// all trials take on the disk, in bytes, by the name of their directory: the id
// of the attempt or the trial. What goes meanwhile, or cannot be read, counts as empty. It
// remembers the sum.
func (e *Executor) MeasureOutputs(ctx context.Context) (map[string]int64, error) {
	sizes, total := make(map[string]int64), int64(0)

	for _, dir := range []string{e.attemptsDir(), e.checkpointsDir()} {
		if err := walkBelow(dir, func(path string, info fs.FileInfo) error {
			name, _, _ := strings.Cut(path, "/")
			name = strings.TrimSuffix(name, ofStages)
			size := max(diskBytes(info), entryBytes)
			sizes[name] += size
			total += size

			return ctx.Err()
		}); err != nil {
			return nil, fmt.Errorf("measuring the files below %q: %w", dir, err)
		}
	}

	e.outputBytes.Store(total)

	return sizes, nil
}

// OutputBytes is what MeasureOutputs found last; 0 before.
func (e *Executor) OutputBytes() int64 { return e.outputBytes.Load() }
