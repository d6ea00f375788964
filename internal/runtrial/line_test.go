package runtrial

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// Python's logging writes to standard error: what it has is metrics without an objective, too,
// and beside one. Frameworks that log from C++ write no metrics.
func TestOutput_LoggingToStandardError(t *testing.T) {
	t.Parallel()

	for _, prefix := range []string{
		"INFO:root:", "WARNING:root:", "2026-01-01 12:00:00,123 - train - INFO - ", "2026-01-01 12:00:00,123 INFO ", "[12:00:00] [INFO] ",
		"2026-01-01 12:00:00.123 | INFO     | train:main:42 - ", "2026-01-01T12:00:00Z [info     ] ", "I1125 16:00:01.123456 140 train.py:12] ",
	} {
		_, rest := printedAs(t, nil, berth.Stderr, prefix+"epoch 1 loss=0.5\n"+prefix+"epoch 2 loss=0.4\n")
		require.Len(t, rest.Points, 2, prefix)

		_, rest = printedAs(t, &berth.Objective{Metric: "val_loss"}, berth.Stderr, prefix+"epoch 1 train_loss=0.5\n"+prefix+"epoch 1 val_loss=0.4\n")
		require.Equal(t, map[string]int{"train_loss": 1, "val_loss": 1}, stepsOf(rest), prefix)
	}

	for _, line := range []string{
		"I0000 00:00:1764060000.1 140 gpu_device.cc:2020] Created device /job:localhost/device:GPU:0 with memory: 35\n", "loss=0.5\n",
		"2026-01-01 12:00:00.123456: I tensorflow/core/platform/x.cc:182] rebuild with flags: 1\n", "box:1:2 [0] NCCL INFO comm rank: 0\n",
	} {
		_, rest := printedAs(t, nil, berth.Stderr, line)
		require.Empty(t, rest.Points, line)
	}
}

// A metrics file holds what programs print, too.
func TestReadFile_Forms(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"indented": "{\n  \"epoch\": 3,\n  \"note\": \"x\",\n  \"acc\": 0.91\n}\n", "Python": "{'epoch': 3, 'acc': 0.91}\n",
		"list": `[{"epoch": 1, "acc": 0.5}, {"epoch": 2, "acc": 0.91}]` + "\n", "pair": "acc=0.91\n", "byte order mark": "\xef\xbb\xbf{\"acc\": 0.91}\n",
		"nan": `{"acc": 0.91, "loss": nan}`, "too large": `{"acc": 0.91, "loss": 1e999}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o, path := fileOutput(t)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			o.file.read(math.MaxInt64)
			o.finish()

			value, _ := o.metrics.Objective(berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
			require.NotNil(t, value)
			require.InDelta(t, 0.91, *value, 0)
			require.Empty(t, o.notes())
		})
	}

	o, path := fileOutput(t)
	require.NoError(t, os.WriteFile(path, []byte("garbage\n\n{\"acc\": 0.91}\n"), 0o600))
	o.file.read(math.MaxInt64)
	require.Equal(t, []string{`a line of its metrics file holds no metric that Berth can read: "garbage"`}, o.notes())
}

// The message of a trial without a result says what was seen, and why it does not count.
func TestOutput_MessageWithoutAResult(t *testing.T) {
	t.Parallel()

	const pattern = `^METRIC (?P<name>\w+) (?P<value>\S+)$`

	for text, c := range map[string]struct{ stream, pattern, want string }{
		"METRIC: val_acc 0.91\nval_acc=0.91\n": {berth.Stdout, pattern, `metrics.pattern found nothing in what it printed; without a pattern Berth finds "val_acc"`},
		"METRIC loss 0.1\nval_acc=0.91\n":      {berth.Stdout, pattern, `metrics.pattern found "loss" only; without a pattern Berth finds "val_acc"`},
		"val acc is now 0.85\n":                {berth.Stdout, "", `metrics: {pattern: '(?P<name>val\s+acc)`},
	} {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) {
			who.Spec.Objective = &berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize}
			who.Spec.Metrics.Pattern = c.pattern
		})

		out := newOutput(r.newRun(t))
		for i, line := range strings.SplitAfter(text, "\n") {
			out.take(chunk(c.stream, line, i))
		}

		out.finish()

		_, message := failure.Classify(failure.Evidence{
			Objective: "val_acc", FromLog: true, OwnPattern: c.pattern != "", Reported: out.metrics.Names(), Printed: out.names.seen, Near: out.near(),
		})
		require.Contains(t, message, c.want, text)
	}
}

// The user said by the pattern which lines count.
func TestOutput_APatternIsAllThatCounts(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"FINAL val_acc=0.9\n{'val_acc': 0.1}\n", "FINAL val_acc=0.9\nsummary {'val_acc': 0.1}\n", "FINAL val_acc=0.9\n" + `{"message": "x", "val_acc": 0.1}` + "\n"} {
		r := setup(t)
		o := berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize}
		r.books.says(func(who *berth.Assignee) {
			who.Spec.Objective = &o
			who.Spec.Metrics.Source, who.Spec.Metrics.Pattern = berth.MetricsStdout, `^FINAL (?P<name>\w+)=(?P<value>\S+)$`
		})

		out := newOutput(r.newRun(t))
		for i, line := range strings.SplitAfter(text, "\n") {
			out.take(chunk(berth.Stdout, line, i))
		}

		out.finish()

		value, _ := out.metrics.Objective(o)
		require.NotNil(t, value)
		require.InDelta(t, 0.9, *value, 0, "%q: the user said which lines count", text)
	}
}
