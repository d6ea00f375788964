package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/script"
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

		if param, is := strings.CutPrefix(name, paramPrefix); is {
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
	Trial   int       `json:"trial"`
	Attempt int       `json:"attempt"`
	Name    string    `json:"name"`
	Step    int64     `json:"step"`
	Value   *float64  `json:"value"` // nil = Status says what it is
	Status  string    `json:"status"`
	At      time.Time `json:"at"`
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
// all points of the attempt that each trial's row is of, by trial, name and step.
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

	place, err := e.place(sweep, top)
	if err != nil {
		return err
	}

	stage, err := stageDir(place)
	if err != nil {
		return exitf(ExitUsage, "writing to %q: %w", e.to, plainError(err))
	}
	defer os.RemoveAll(stage) //nolint:errcheck // what is left of it has a name that says what it is

	root, err := os.OpenRoot(stage)
	if err != nil {
		return exitf(ExitError, "opening %q: %w", stage, plainError(err))
	}
	defer root.Close() //nolint:errcheck // files were closed

	if err := e.fill(cmd, to, sweep, place, root); err != nil {
		return err
	}

	if err := replace(stage, place); err != nil {
		return err
	}

	look := "tensorboard --logdir"
	if e.format == formatMLflow {
		look = "MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri"
	}

	say(cmd.ErrOrStderr(), "written; look at it with `%s %s`\n", look, script.ShellCommand(top))

	return nil
}

// place is the directory of the sweep's export.
func (e exported) place(sweep client.Sweep, top string) (string, error) {
	if e.format == formatMLflow {
		id, err := mlflowID(sweep.ID)

		return filepath.Join(top, id), err
	}

	// The id, which tells sweeps of one name apart, is there also where the name is cut.
	end := "-" + short(sweep.ID)

	name := cutText(sweep.Name, longestFileName-len(end)) + end
	if name != filepath.Base(name) { // what was there goes
		return "", exitf(ExitError, "the server names a sweep %q, which is no name of a directory", sweep.Name)
	}

	return filepath.Join(top, name), nil
}

// longestFileName is what file systems have, in bytes.
const longestFileName = 255

// cutText is the beginning of a text, in whole characters.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}

	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most]
}

// fill writes a directory for its place.
func (e exported) fill(cmd *cobra.Command, to *remote, sweep client.Sweep, place string, root *os.Root) error {
	var out exportDir = newEventDir(root)

	if e.format == formatMLflow {
		m, err := newMLflow(sweep, place, root)
		if err != nil {
			return exitf(ExitError, "writing to %q: %w", e.to, plainError(err))
		}

		if out = m; e.files {
			m.files = e.fetchTo(cmd, to, root)
		}
	}

	counts := make(map[int]int) // the attempt of each trial, which may run again while this is written

	err := e.lines(cmd.Context(), to, string(client.ExportTrials), func(line []byte) error {
		t, err := readTrialLine(line)
		if err != nil {
			return err
		}

		counts[t.Number] = t.Attempt

		return out.trial(t)
	})
	if err == nil {
		err = e.lines(cmd.Context(), to, string(client.ExportMetrics), func(line []byte) error {
			var m metricLine
			if err := json.Unmarshal(line, &m); err != nil || m.Attempt != counts[m.Trial] {
				return err
			}

			return out.point(m)
		})
	}

	if closed := out.close(); err == nil {
		err = closed
	}

	return err
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
