package metrics

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestReader(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		pattern, line string
		want          []berth.MetricPoint
	}{
		"exponents":         {"", "lr=1e-05, loss=-2.5E+3", []berth.MetricPoint{metric("loss", 1, -2500), metric("lr", 1, 1e-05)}},
		"percent":           {"", "acc: 91%", []berth.MetricPoint{metric("acc", 1, 91)}},
		"too large":         {"", "loss=1e999", []berth.MetricPoint{odd("loss", 1, berth.MetricPosInfinity)}},
		"Keras' bar":        {"", "1/5 loss: 9\r2/5 loss: 8\r5/5 loss: 7\r\n", []berth.MetricPoint{metric("loss", 1, 7)}},
		"no number":         {"", "state=running version=1.2.3 time: 12:30 took=3.2s", nil},
		"logged record":     {"", `INFO:root:{"epoch": 2, "val_acc": 0.91}`, []berth.MetricPoint{metric("val_acc", 1, 0.91)}},
		"tqdm":              {"", "train: 100%|██████████| 938/938 [00:12<00:00, 75.1it/s, loss=0.25, acc=0.91]", []berth.MetricPoint{metric("train acc", 1, 0.91), metric("train loss", 1, 0.25)}},
		"Python's words":    {"", `{'loss': nan, 'best': True, 'note': None, 'top': inf}`, []berth.MetricPoint{odd("loss", 1, berth.MetricNaN), odd("top", 1, berth.MetricPosInfinity)}},
		"record of words":   {"", `{loss: 0.25}`, []berth.MetricPoint{metric("loss", 1, 0.25)}},
		"colours":           {"", "\x1b[32mloss\x1b[0m=\x1b[1;31m0.25\x1b[0m", []berth.MetricPoint{metric("loss", 1, 0.25)}},
		"end of a sentence": {"", "The val_acc is done: acc=0.5. Next", []berth.MetricPoint{metric("acc", 1, 0.5)}},
		"words before":      {"", "Epoch 3 Train Loss: 0.1 | Val Loss: 0.4", []berth.MetricPoint{metric("Train Loss", 1, 0.1), metric("Val Loss", 1, 0.4)}},
		"no split":          {"", "interval loss: 0.1", []berth.MetricPoint{metric("interval loss", 1, 0.1)}},
		"two lines in one":  {"", "loss=2\nloss=1", []berth.MetricPoint{metric("loss", 1, 2), metric("loss", 2, 1)}},
		"object":            {"", `{"step": 4, "loss": 0.5, "acc": NaN, "note": "x"}`, []berth.MetricPoint{odd("acc", 4, berth.MetricNaN), metric("loss", 4, 0.5)}},
		"own pattern":       {`(?P<name>\w+) is (?P<value>\S+)`, "loss is 0.5 acc=1", []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"groups turned":     {`(?P<value>[\d.]+) (?P<name>\w+)`, "0.5 loss", []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"own, no groups":    {`\w+=\d`, "loss=1", nil},
		"garbage":           {"", "\xff\xfe loss=1 \x00", []berth.MetricPoint{metric("loss", 1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, c.want, byName(NewReader(c.pattern, "").readAll(berth.Stdout, c.line)))
		})
	}
}

// The objective is found however its words are written, and nothing else takes its name.
func TestReader_KnowsTheObjective(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"Val Loss: 0.4": "val_loss", "val-loss: 0.4": "val_loss", "VAL/LOSS=0.4": "val_loss", "val_loss 0.4, val_loss=0.4": "val_loss",
		"Train Loss: 0.4": "Train Loss", "loss: 0.4": "loss",
	} {
		require.Equal(t, []berth.MetricPoint{metric(want, 1, 0.4)}, NewReader("", "val_loss").readAll(berth.Stdout, line), line)
	}

	for line, want := range map[string][]berth.MetricPoint{
		"reward 200": {metric("reward", 1, 200)}, "episode 7 reward 200": {metric("reward", 1, 200)}, "reward 200 episodes ahead": nil,
	} {
		require.Equal(t, want, NewReader("", "reward").readAll(berth.Stdout, line), line)
	}

	own := NewReader(`(?P<name>\w+ \w+): (?P<value>\S+)`, "val_loss").readAll(berth.Stdout, "Val Loss: 0.4")
	require.Equal(t, "val_loss", own[0].Name, "also as a pattern finds it")
}

// Frameworks print to standard error what looks like metrics: there a line has the objective, or is a record.
func TestReader_Stderr(t *testing.T) {
	t.Parallel()

	oom := "OOM when allocating tensor with shape[256] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"

	for line, want := range map[string][]berth.MetricPoint{
		oom: nil, "loss=0.25": nil, `{"loss": 0.25}`: {metric("loss", 1, 0.25)},
		"loss=0.25, val_acc=0.5": {metric("loss", 1, 0.25), metric("val_acc", 1, 0.5)},
	} {
		require.Equal(t, want, byName(NewReader("", "val_acc").readAll(berth.Stderr, line)), line)
	}

	own := NewReader(`(?P<name>\w+)=(?P<value>\S+)`, "val_acc")
	require.Equal(t, []berth.MetricPoint{metric("loss", 1, 0.25)}, own.readAll(berth.Stderr, "loss=0.25"))
}

func TestReader_CountsByName(t *testing.T) {
	t.Parallel()

	p := NewReader("", "")
	require.Equal(t, []berth.MetricPoint{metric("a", 1, 1)}, p.readAll(berth.Stdout, "a=1"))
	require.Equal(t, []berth.MetricPoint{metric("a", 2, 2), metric("b", 1, 3)}, p.readAll(berth.Stdout, "a=2 b=3"))
}

// readAll reads lines.
func (r *Reader) readAll(stream, text string) (points []berth.MetricPoint) {
	for line := range strings.SplitSeq(text, "\n") {
		points = append(points, r.Read(stream, line, noon)...)
	}

	return points
}

func FuzzReader(f *testing.F) {
	f.Add("loss=1e-3 {\"a\":NaN}\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range NewReader("", "").readAll(berth.Stdout, text) {
			require.NotEmpty(t, p.Name)
			require.False(t, math.IsNaN(p.Value) || math.IsInf(p.Value, 0))
			require.NotContains(t, p.Name, "\x00")
		}
	})
}
