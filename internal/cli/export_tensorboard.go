package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/tfevents"
)

// eventDir writes a sweep as a log directory of TensorBoard: each trial is a run
// with an event file, which has its scalars, and its values for the tab of
// hyperparameters.
type eventDir struct {
	root *os.Root
	runs map[int]string // the event file of each trial

	trialNumber int // whose points are written
	file        *os.File
	out         *tfevents.Writer
}

func newEventDir(root *os.Root) *eventDir { return &eventDir{root: root, runs: make(map[int]string)} }

func (b *eventDir) trial(t trialLine) error {
	run := fmt.Sprintf("trial-%05d", t.Number)
	if err := b.root.MkdirAll(run, 0o755); err != nil {
		return err
	}

	b.runs[t.Number] = fmt.Sprintf("%s/events.out.tfevents.%010d.berth", run, t.began().Unix())

	file, err := b.root.Create(b.runs[t.Number])
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // closed below, where it matters

	session := tfevents.Session{Group: run, HParams: make(map[string]any), Began: unixSeconds(t.began()), Status: sessionStatus(t.State)}
	if t.FinishedAt != nil {
		session.Ended = unixSeconds(*t.FinishedAt)
	}

	for name, raw := range t.params {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}

		session.HParams[name] = value
	}

	out, err := tfevents.NewWriter(file, session.Began)
	if err == nil {
		err = out.Session(session)
	}

	if err == nil && t.Value != nil {
		err = out.Scalar(tfevents.Scalar{Tag: "berth/value", WallTime: max(session.Began, session.Ended), Value: *t.Value})
	}

	if err == nil {
		err = out.Flush()
	}

	if closed := file.Close(); err == nil {
		err = closed
	}

	return err
}

func sessionStatus(state string) tfevents.SessionStatus {
	switch s := client.TrialState(state); s {
	case client.TrialStateSucceeded:
		return tfevents.SessionSuccess
	case client.TrialStateFailed, client.TrialStateInfeasible, client.TrialStateCanceled:
		return tfevents.SessionFailure
	case client.TrialStateRunning:
		return tfevents.SessionRunning
	default:
		return tfevents.SessionUnknown
	}
}

func (b *eventDir) point(p metricLine) error {
	name, known := b.runs[p.Trial]
	if !known { // the trial was made since
		return nil
	}

	if b.file == nil || p.Trial != b.trialNumber {
		if err := b.close(); err != nil {
			return err
		}

		file, err := b.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}

		b.trialNumber, b.file, b.out = p.Trial, file, tfevents.AppendTo(file)
	}

	return b.out.Scalar(tfevents.Scalar{Tag: p.Name, Step: p.Step, WallTime: unixSeconds(p.At), Value: p.number()})
}

func (b *eventDir) close() error {
	if b.file == nil {
		return nil
	}

	err := b.out.Flush()
	if closed := b.file.Close(); err == nil {
		err = closed
	}

	b.file, b.out = nil, nil

	return err
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
