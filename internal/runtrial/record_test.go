package runtrial

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// metric is a finite point.
func metric(name string, step int64, value float64) berth.MetricPoint {
	return berth.MetricPoint{Name: name, Step: step, Value: value, Status: berth.MetricFinite, At: noon}
}

func odd(name string, step int64, status berth.MetricStatus) berth.MetricPoint {
	return berth.MetricPoint{Name: name, Step: step, Status: status, At: noon}
}

func final(p berth.MetricPoint) berth.MetricPoint {
	p.Final = true

	return p
}

// transformers rounds epochs to two decimals: the first logs of a large data set are all of epoch
// 0.0. They are numbered in order, and what names its epochs or steps as whole numbers is not.
func TestOutput_EpochsThatAreRounded(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]map[string]float64{
		"{'loss': 0.9, 'epoch': 0.0}\n{'loss': 0.8, 'epoch': 0.0}\n{'loss': 0.7, 'epoch': 0.0}\n{'loss': 0.6, 'epoch': 0.01}\n": {
			"loss/0": 0.9, "loss/1": 0.8, "loss/2": 0.7, "loss/3": 0.6,
		},
		"{'loss': 0.9, 'epoch': 1.0}\n{'eval_loss': 0.8, 'epoch': 1.0}\n{'loss': 0.7, 'epoch': 2.0}\n{'eval_loss': 0.6, 'epoch': 2.0}\n": {
			"loss/1": 0.9, "eval_loss/1": 0.8, "loss/2": 0.7, "eval_loss/2": 0.6,
		},
		`{"loss": 0.9, "epoch": 0}` + "\n" + `{"loss": 0.8, "epoch": 0}` + "\n":                           {"loss/0": 0.8},
		`{"loss": 0.9, "step": 3, "epoch": 0.0}` + "\n" + `{"loss": 0.8, "step": 3, "epoch": 0.0}` + "\n": {"loss/3": 0.8},
		"{'val_loss': 0.9, 'epoch': 0.0}\n{'val_loss': 0.8, 'epoch': 0.0}\n":                              {"val_loss/0": 0.9, "val_loss/1": 0.8},
	} {
		_, rest := printedAs(t, &berth.Objective{Metric: "loss"}, berth.Stdout, text)
		got := make(map[string]float64)

		for _, p := range rest.Points {
			got[key(p)] = p.Value
		}

		require.Equal(t, want, got, text)
	}
}

// The next worker numbers them on.
func TestOutput_EpochsThatAreRoundedAfterAKilledWorker(t *testing.T) {
	t.Parallel()

	killed, adopt := autoOutput(t, berth.Objective{Metric: "loss"})
	lines := []string{"{'loss': 0.9, 'epoch': 0.0}\n", "{'loss': 0.8, 'epoch': 0.0}\n", "{'loss': 0.7, 'epoch': 0.0}\n", "{'loss': 0.6, 'epoch': 1.0}\n"}

	for i, line := range lines[:2] {
		killed.take(chunk(berth.Stdout, line, i))
	}

	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	next := adopt()
	for i, line := range lines {
		next.take(chunk(berth.Stdout, line, i))
	}

	rest, _ := next.finish()
	require.Len(t, rest.Points, 4)
	require.Equal(t, int64(2), rest.Points[2].Step)
	require.Equal(t, int64(3), rest.Points[3].Step)
}

// A step that begins anew in each epoch names no place on the curve.
func TestOutput_StepsThatBeginAnewInEachEpoch(t *testing.T) {
	t.Parallel()

	o := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
	_, rest := printedAs(t, &o, berth.Stdout, `{"epoch": 1, "step": 100, "val_loss": 0.5}`+"\n"+
		`{"epoch": 2, "step": 100, "val_loss": 0.4}`+"\n"+`{"epoch": 3, "step": 100, "val_loss": 0.3}`+"\n")

	steps := make(map[int64]bool)

	for _, p := range rest.Points {
		if p.Name == "val_loss" {
			steps[p.Step] = true
		}
	}

	require.Len(t, steps, 3, "one for each epoch")
}

func key(p berth.MetricPoint) string { return fmt.Sprint(p.Name, "/", p.Step) }
