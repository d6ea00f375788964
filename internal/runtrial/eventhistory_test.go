package runtrial

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// docs/job-contract.md: "One that the program itself calls `val_accuracy` comes first", before Keras'
// val_epoch_accuracy. Programs write their own after fit, so Keras' is read first.
func TestEventFiles_OwnObjectiveAfterKeras(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "accuracy")
	plantFile(t, filepath.Join(out, "logs/train/events.out.tfevents.1764060000.x"), eventData(t, "epoch_accuracy", 0.5, 0.9, 0.999))
	o.reports(false)
	plantFile(t, filepath.Join(out, "eval/events.out.tfevents.1764060009.x"), nil) // another writer, which has nothing yet
	plantFile(t, filepath.Join(out, "events.out.tfevents.1764060009.x"), eventData(t, "accuracy", 0.75))
	o.reports(true)

	for _, strategy := range []berth.Strategy{berth.StrategyLast, berth.StrategyBest, berth.StrategyMean} {
		value, _ := o.metrics.objective(berth.Objective{Metric: "accuracy", Goal: berth.GoalMaximize, Strategy: strategy})
		require.NotNil(t, value)

		if *value != 0.75 {
			t.Errorf("%s: %v, and the program's own accuracy is 0.75", strategy, *value)
		}
	}
}

// The same within one look, and what a curve shows of it: the database keeps one value of each step.
func TestEventFiles_OwnObjectiveAfterKerasInOneLook(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "accuracy")
	plantFile(t, filepath.Join(out, "logs/train/events.out.tfevents.1764060000.x"), eventData(t, "epoch_accuracy", 0.5, 0.9, 0.999))
	plantFile(t, filepath.Join(out, "events.out.tfevents.1764060009.x"), eventData(t, "accuracy", 0.75))
	require.Equal(t, []string{"accuracy/0=0.75", "epoch_accuracy/0=0.5", "epoch_accuracy/1=0.9", "epoch_accuracy/2=0.999"}, o.reports(true))
}

// docs/job-contract.md: "of two files the one counts whose writer began later", also where the older writer
// is flushed last (PyTorch's keeps events for two minutes, or until the program ends).
func TestEventFiles_LaterWriterCountsWhenTheOlderIsFlushedLast(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	older, later := filepath.Join(out, "fold1/events.out.tfevents.1764060001.x"), filepath.Join(out, "fold2/events.out.tfevents.1764060009.x")
	whole := eventData(t, "loss", 9, 8, 7)

	plantFile(t, older, whole[:bytes.Index(whole, []byte("loss"))-20]) // its first record, no value yet
	plantFile(t, later, eventData(t, "loss", 3, 2, 1))
	o.reports(false)
	plantFile(t, older, whole)
	require.Empty(t, o.reports(true), "the curve keeps what the later one has of these steps")

	value, _ := o.metrics.objective(berth.Objective{Metric: "loss", Goal: berth.GoalMinimize})
	require.NotNil(t, value)
	require.InDelta(t, 1.0, *value, 0)
}

// A file that the job writes anew, as shutil.copy does at each epoch, has each value once.
func TestEventFiles_RewrittenFileCountsOnce(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	file := filepath.Join(out, "events.out.tfevents.1764060001.x")

	plantFile(t, file, eventData(t, "loss", 8, 6))
	o.reports(false)
	plantFile(t, file, nil) // truncated by the copy
	o.reports(false)
	plantFile(t, file, eventData(t, "loss", 8, 6, 1))
	o.reports(true)

	value, _ := o.metrics.objective(berth.Objective{Metric: "loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyMean})
	require.NotNil(t, value)
	require.InDelta(t, 5.0, *value, 0.001, "the mean of 8, 6 and 1")
}

// docs/job-contract.md: "A metric has the name of its tag. … Other directories do not matter."
func TestEventFiles_DirectoryThatBeginsLikeTheTag(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	plantFile(t, filepath.Join(out, "loss_curves/events.out.tfevents.1764060001.x"), eventData(t, "loss", 3, 2, 1))
	o.reports(true)

	value, status := o.metrics.objective(berth.Objective{Metric: "loss", Goal: berth.GoalMinimize})
	require.NotNil(t, value, "the program wrote loss, and the trial has no result: %q", status)
	require.InDelta(t, 1.0, *value, 0)
}

// One key of add_scalars is met before its sibling: what was taken for the objective is taken back.
func TestEventFiles_KeysOfTheObjectiveAreNone(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	plantFile(t, filepath.Join(out, "loss_train/events.out.tfevents.1764060001.x"), eventData(t, "loss", 3, 2))
	require.Equal(t, []string{"loss/0=3", "loss/1=2", "loss_train/0=3", "loss_train/1=2"}, o.reports(false))

	plantFile(t, filepath.Join(out, "loss_val/events.out.tfevents.1764060001.x"), eventData(t, "loss", 5, 4))
	o.events.next = time.Time{}
	o.events.look(true)

	pending := o.metrics.pending()
	require.Contains(t, pending.drop, "loss", "the database loses what it has")

	for _, p := range pending.points {
		require.NotEqual(t, "loss", p.Name)
	}

	value, _ := o.metrics.objective(berth.Objective{Metric: "loss"})
	require.Nil(t, value, "which of the two is meant nobody knows")
	require.Equal(t, []string{"loss_train", "loss_val"}, o.metrics.names())
}

// A directory that only looks like a key does not stand for an objective that is there by its own name.
func TestEventFiles_OwnNameWinsOverADirectory(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	plantFile(t, filepath.Join(out, "loss_curves/events.out.tfevents.1764060009.x"), eventData(t, "loss", 30))
	o.reports(false)
	plantFile(t, filepath.Join(out, "events.out.tfevents.1764060001.x"), eventData(t, "loss", 3))
	o.reports(true)

	value, _ := o.metrics.objective(berth.Objective{Metric: "loss"})
	require.NotNil(t, value)
	require.InDelta(t, 3.0, *value, 0)
}

// A history that has nothing finite says so, and adds nothing to what others have.
func TestHistory_Merge(t *testing.T) {
	t.Parallel()

	told := func(values ...float64) (h history) {
		for step, v := range values {
			status := berth.MetricFinite
			if math.IsNaN(v) {
				v, status = 0, berth.MetricNaN
			}

			h.add(berth.MetricPoint{Step: int64(step), Value: v, Status: status})
		}

		return h
	}

	for _, c := range [][][]float64{{{3, 1}, {2}}, {{}, {4}}, {{4, 5}, {}}, {{1}, {math.NaN()}}, {{math.NaN()}, {1, 7}}, {{}, {}}} {
		got, want := told(c[0]...), told(append(append([]float64{}, c[0]...), c[1]...)...)
		got.merge(told(c[1]...))

		got.Before, want.Before = nil, nil
		got.Step, want.Step = 0, 0

		require.Equal(t, want, got, c)
	}
}
