package runtrial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/berthml/berth"
)

// Where a job sees its directories. Jobs rely on these paths.
const (
	mountIn         = "/trial/in"
	mountOut        = "/trial/out"
	mountCheckpoint = "/trial/checkpoint"
	paramsName      = "params.json"
	metricsName     = "metrics.jsonl"
)

// ours is what of an attempt's directory goes when its result is committed.
var ours = []string{
	"in", "shim", launchName, launchName + ".tmp", verdictName, verdictName + ".tmp", recordName,
	fetchingName, workName + ".tmp", workManifest + ".tmp",
}

// dirs are the host's directories of one attempt.
type dirs struct {
	attempt    string // holds in and out, and the launch, the record and the verdict, which are ours
	in         string // read-only for the job
	out        string // metrics and artifacts
	shim       string // the shim's records
	secrets    string // files of secrets, each mounted by itself
	checkpoint string // of the trial's stage; survives attempts, but a short probe has its own
	copied     int64  // bytes of what the image has in the working directory
}

func (e *Executor) dirs(who berth.Assignee) dirs {
	attempt := filepath.Join(e.attemptsDir(), who.Attempt.ID)

	return dirs{
		attempt:    attempt,
		in:         filepath.Join(attempt, "in"),
		out:        filepath.Join(attempt, "out"),
		shim:       filepath.Join(attempt, "shim"),
		secrets:    filepath.Join(e.secretsDir(), who.Attempt.ID),
		checkpoint: e.checkpointDir(who.Trial.ID, who.Attempt.Stage),
	}
}

func (e *Executor) attemptsDir() string { return filepath.Join(e.config.DataDir, "attempts") }

func (e *Executor) checkpointsDir() string { return filepath.Join(e.config.DataDir, "checkpoints") }

// ofStages ends the name of the directory with the checkpoints of a trial's earlier stages.
const ofStages = ".stages"

// checkpointDir is the checkpoint directory of a trial's stage.
func (e *Executor) checkpointDir(trialID, stage string) string {
	if stage == berth.StageMain {
		return filepath.Join(e.checkpointsDir(), trialID)
	}

	return filepath.Join(e.checkpointsDir(), trialID+ofStages, stage)
}

// make creates the directories and the parameters file. Doing it again, as
// after a crash, changes nothing the job may have written. The job's user is
// the image's business, so what it writes is open to all users; the parents
// are closed, which keeps everyone else on the host out.
func (d dirs) make(params berth.Assignment) error {
	data, err := json.Marshal(params)
	if err != nil {
		return berth.Errorf(berth.KindInternal, "encoding parameters: %w", err)
	}

	for _, dir := range []string{d.out, d.shim, d.checkpoint, d.in} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making directory: %w", err)
		}
	}

	for dir, mode := range map[string]os.FileMode{d.out: 0o777, d.shim: 0o777, d.checkpoint: 0o777, d.in: 0o755} {
		if err := os.Chmod(dir, mode); err != nil {
			return fmt.Errorf("opening directory to the job: %w", err)
		}
	}

	file := filepath.Join(d.in, paramsName)
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, data) { //nolint:gosec // G304: below our data directory
		return nil // a full disk takes no second copy
	}

	return writeFile(file, data)
}

// writeFile writes to a temporary name and renames, so that a reader never
// sees half a file.
func writeFile(path string, data []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, data, 0o644); err != nil { //nolint:gosec // G306: the job's user must read it
		return fmt.Errorf("writing %q: %w", path, err)
	}

	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}

	return nil
}

// writeJSON writes a value as writeFile does. Errors name what it is.
func writeJSON(path, what string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return berth.Errorf(berth.KindInternal, "encoding %s: %w", what, err)
	}

	return writeFile(path, data)
}

// readJSON reads what writeJSON wrote; false when it is not there, or not readable.
func readJSON(path string, value any) bool {
	data, err := os.ReadFile(path) //nolint:gosec // G304: below our data directory

	return err == nil && json.Unmarshal(data, value) == nil
}

// clean removes all but the attempt's output, which stays until the sweep is
// deleted or a limit removes it: it holds the artifacts. Of a short probe nothing stays.
func (d dirs) clean() error {
	names := slices.Clone(ours)
	if d.thrownAway() { // its mark goes after its output
		names = append([]string{"out", workName, probeCheckpoint}, names...)
	}

	kept := d.dropSecrets() // found by the launch, which goes with the rest

	all := d.gather()
	if all == nil {
		names = append(names, workManifest)
	}

	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(d.attempt, name)); err != nil {
			all = errors.Join(all, fmt.Errorf("removing %q of attempt: %w", name, err))
		}
	}

	all = errors.Join(all, kept)

	_ = os.Remove(d.attempt) // is empty when the attempt never started or was a short probe; else it stays

	return all
}
