package runtrial

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/berthml/berth"
)

// marksName is the directory with a keptMark of each trial.
const marksName = "checkpoint-marks"

// keptMark says what lies in the checkpoint directory of a trial on this host. The
// database knows less: an attempt that was given up may have run and written, and a
// fetch may have ended, before either was noted.
type keptMark struct {
	Checkpoint string   `json:"checkpoint,omitempty"` // as which it was fetched; empty = it began here
	Attempts   []string `json:"attempts,omitempty"`   // ids of those whose container may have written to it since
	Dir        string   `json:"dir,omitempty"`        // the directory, when its newest container was started with another data directory
}

// wrote reports whether an attempt that was given up may have written what lies there. One
// that ended without a container did not.
func (m keptMark) wrote(e berth.EarlierCheckpoint) bool {
	return e.GivenUp && slices.Contains(m.Attempts, e.AttemptID)
}

// written reports whether what lies there may have changed since it was fetched. An
// attempt that the database does not know, for it was restored from a dump, may have run.
func (m keptMark) written(earlier []berth.EarlierCheckpoint) bool {
	return slices.ContainsFunc(m.Attempts, func(id string) bool {
		n := slices.IndexFunc(earlier, func(e berth.EarlierCheckpoint) bool { return e.AttemptID == id })

		return n < 0 || earlier[n].Ran || earlier[n].GivenUp
	})
}

// older reports whether an attempt that ran on this host did not write what lies there,
// and the store has all that it left: the data directory is a copy of before. Workers of
// an earlier version make no marks, so without the store nothing follows from a mark.
func (m keptMark) older(than berth.EarlierCheckpoint) bool {
	whole := than.Stored != nil && than.Left && !than.Coming && !than.GivenUp && than.Problem == ""

	return whole && (m.Checkpoint != "" || len(m.Attempts) > 0) && !slices.Contains(m.Attempts, than.AttemptID)
}

// marked reads the mark; without one, as of an earlier version, nothing is known.
func (d dirs) marked() (m keptMark) {
	data, err := os.ReadFile(d.mark)
	if err != nil || json.Unmarshal(data, &m) != nil {
		return keptMark{}
	}

	return m
}

func (d dirs) keepMark(m keptMark) error {
	if err := os.MkdirAll(filepath.Dir(d.mark), 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	return writeJSON(d.mark, "the mark of a checkpoint", m)
}

// mark notes the attempt in the mark. One that was prepared before, by a version that
// made no marks, goes on without: its container may run, and the disk may be full.
// Errors: unavailable.
func (r *run) mark() error {
	if r.short {
		return nil
	}

	err := r.dirs.markWriter(r.who.Attempt.ID)
	if err != nil && r.dirs.prepared() {
		r.log.Warn("noting that an attempt may write to its trial's checkpoint; going on", "attempt", r.who.Attempt.ID, "error", err)

		return nil
	}

	if err != nil {
		return berth.Errorf(berth.KindUnavailable, "preparing attempt %s: %w", r.who.Attempt.ID, err)
	}

	return nil
}

// markWriter notes an attempt before its container may write to the directory.
func (d dirs) markWriter(attemptID string) error {
	m := d.marked()
	if slices.Contains(m.Attempts, attemptID) {
		return nil
	}

	m.Attempts = append(m.Attempts, attemptID)

	return d.keepMark(m)
}
