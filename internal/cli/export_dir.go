package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// The formats that are a directory for another tool.
const (
	formatMLflow      = "mlflow"
	formatTensorBoard = "tensorboard"
)

var exportDirs = []string{formatMLflow, formatTensorBoard}

// trialLine is a row of the table of trials (docs/export.md).
type trialLine struct {
	Number      int        `json:"number"`
	ID          string     `json:"id"`
	State       string     `json:"state"`
	Value       *float64   `json:"value"`
	FailureKind string     `json:"failure_kind"`
	Message     string     `json:"message"`
	Attempts    int        `json:"attempts"`
	Attempt     int        `json:"attempt"` // 0 = it had none that counts
	Host        string     `json:"host"`
	Device      string     `json:"device"`
	CreatedAt   time.Time  `json:"created_at"`
	StartedAt   *time.Time `json:"started_at"`
	FinishedAt  *time.Time `json:"finished_at"`

	MemoryReserved int64 `json:"memory_reserved_bytes"`
	MemoryPeak     int64 `json:"memory_peak_bytes"`
	DeviceReserved int64 `json:"device_reserved_bytes"`
	DevicePeak     int64 `json:"device_peak_bytes"`

	params   map[string]json.RawMessage // those that apply
	datasets map[string]string
}

// began is when the trial started, else when it was made.
func (t trialLine) began() time.Time {
	if t.StartedAt != nil {
		return *t.StartedAt
	}

	return t.CreatedAt
}

func readTrialLine(line []byte) (t trialLine, err error) {
	var cells map[string]json.RawMessage

	if err = json.Unmarshal(line, &t); err != nil {
		return t, err
	}

	if err = json.Unmarshal(line, &cells); err != nil {
		return t, err
	}

	t.params, t.datasets = make(map[string]json.RawMessage), make(map[string]string)

	for _, name := range slices.Sorted(maps.Keys(cells)) {
		raw := cells[name]
		if string(raw) == "null" {
			continue
		}

		if param, is := strings.CutPrefix(name, "params."); is {
			t.params[param] = raw
		} else if dataset, is := strings.CutPrefix(name, "datasets."); is {
			t.datasets[dataset] = rawText(raw)
		}
	}

	return t, nil
}

// rawText is a text as it is, and any other value as JSON has it.
func rawText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}

	return string(raw)
}

// metricLine is a row of the table of metric points.
type metricLine struct {
	Trial  int       `json:"trial"`
	Counts bool      `json:"counts"`
	Name   string    `json:"name"`
	Step   int64     `json:"step"`
	Value  *float64  `json:"value"` // nil = Status says what it is
	Status string    `json:"status"`
	At     time.Time `json:"at"`
}

// number is the point's value, which may not be finite.
func (m metricLine) number() float64 {
	switch {
	case m.Value != nil:
		return *m.Value
	case m.Status == string(berth.MetricPosInfinity):
		return math.Inf(1)
	case m.Status == string(berth.MetricNegInfinity):
		return math.Inf(-1)
	default:
		return math.NaN()
	}
}

// exportDir writes a directory for another tool: all trials by number first, then
// all points that count, by trial, name and step.
type exportDir interface {
	trial(t trialLine) error
	point(m metricLine) error
	close() error
}

// toDir exports to a directory. It is made under a temporary name beside its
// place, which an earlier export of the sweep leaves to it.
func (e exported) toDir(cmd *cobra.Command, to *remote) error {
	if e.to == "" {
		return exitf(ExitUsage, "--format %s writes a directory; say which with -o DIR", e.format)
	}

	if cmd.Flags().Changed("what") {
		return exitf(ExitUsage, "--format %s has trials and metrics; leave --what out", e.format)
	}

	ctx := cmd.Context()

	sweep, err := to.sweep(ctx, e.sweep)
	if err != nil {
		return err
	}

	e.sweep = sweep.ID

	top, err := filepath.Abs(e.to)
	if err == nil {
		err = os.MkdirAll(top, 0o755) //nolint:gosec // G301: a person's own files
	}

	if err != nil {
		return exitf(ExitUsage, "making the directory %q: %w", e.to, plainError(err))
	}

	stage, err := os.MkdirTemp(top, ".berth-*.part")
	if err != nil {
		return exitf(ExitUsage, "writing to %q: %w", e.to, plainError(err))
	}
	defer os.RemoveAll(stage) //nolint:errcheck // what is left of it has a name that says what it is

	root, err := os.OpenRoot(stage)
	if err != nil {
		return exitf(ExitError, "opening %q: %w", stage, plainError(err))
	}
	defer root.Close() //nolint:errcheck // files were closed

	place, hint, err := e.fill(cmd, to, sweep, top, root)
	if err != nil {
		return err
	}

	if err := replace(stage, place); err != nil {
		return err
	}

	say(cmd.ErrOrStderr(), "%s\n", hint)

	return nil
}

// fill writes a directory and returns where it belongs, and what to do with it.
func (e exported) fill(cmd *cobra.Command, to *remote, sweep client.Sweep, top string, root *os.Root) (place, hint string, err error) {
	var out exportDir

	if e.format == formatMLflow {
		m, err := newMLflow(sweep, top, root)
		if err != nil {
			return "", "", exitf(ExitError, "writing to %q: %w", e.to, plainError(err))
		}

		place, out = m.place, m
		hint = fmt.Sprintf("written; look at it with `MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri %s`", top)

		if e.files {
			m.files = e.fetchTo(cmd, to, root)
		}
	} else {
		name := fmt.Sprintf("%s-%s", sweep.Name, short(sweep.ID))
		if name != filepath.Base(name) { // what was there goes
			return "", "", exitf(ExitError, "the server names a sweep %q, which is no name of a directory", sweep.Name)
		}

		place, out = filepath.Join(top, name), newEventDir(root)
		hint = fmt.Sprintf("written; look at it with `tensorboard --logdir %s`", top)
	}

	err = e.lines(cmd.Context(), to, string(client.ExportTrials), func(line []byte) error {
		t, err := readTrialLine(line)
		if err != nil {
			return err
		}

		return out.trial(t)
	})
	if err == nil {
		err = e.lines(cmd.Context(), to, string(client.ExportMetrics), func(line []byte) error {
			var m metricLine
			if err := json.Unmarshal(line, &m); err != nil || !m.Counts {
				return err
			}

			return out.point(m)
		})
	}

	if closed := out.close(); err == nil {
		err = closed
	}

	return place, hint, err
}

// lines calls use for each line of a table.
func (e exported) lines(ctx context.Context, to *remote, what string, use func([]byte) error) error {
	e.what, e.format = what, string(client.ExportJSONL)

	var rest []byte

	return to.export(ctx, e, writerFunc(func(data []byte) (int, error) {
		rest = append(rest, data...)
		at := 0

		for {
			end := bytes.IndexByte(rest[at:], '\n')
			if end < 0 {
				break
			}

			if err := use(rest[at : at+end]); err != nil {
				return 0, err
			}

			at += end + 1
		}

		rest = append(rest[:0], rest[at:]...)

		return len(data), nil
	}))
}

// replace gives a directory its place.
func replace(stage, place string) error {
	err := os.Chmod(stage, 0o755) //nolint:gosec // G302: a person's own files
	if err == nil {
		err = os.RemoveAll(place)
	}

	if err == nil {
		err = os.Rename(stage, place)
	}

	if err != nil {
		return exitf(ExitError, "writing %q: %w", place, plainError(err))
	}

	return nil
}

// fetchTo downloads the files of trials below a directory that is being made.
func (e exported) fetchTo(cmd *cobra.Command, to *remote, root *os.Root) func(t trialLine, dir string) error {
	return func(t trialLine, dir string) error {
		set, err := to.files(cmd.Context(), t.ID, t.Attempt)
		if err != nil {
			return err
		}

		if set.State != client.FileStateStored {
			say(cmd.ErrOrStderr(), "files of trial %d: %s\n", t.Number, filesText(set))
		}

		target, err := openTarget(filepath.Join(root.Name(), dir))
		if err != nil {
			return err
		}
		defer target.close()

		for _, f := range set.Data {
			if _, err := target.fetch(cmd.Context(), to, fetch{trial: t.ID, attempt: set.Attempt, file: f, seen: func(int64) {}}); err != nil {
				return err
			}
		}

		return nil
	}
}
