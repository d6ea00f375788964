package runtrial

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/tfevents"
)

// autoOutput is what an attempt of a sweep without a source says.
func autoOutput(t *testing.T, o berth.Objective) (*output, func() *output) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, &o })

	adopt := func() *output {
		run := r.newRun(t)
		run.container.ID = "c"
		require.NoError(t, run.dirs.make(nil))

		return newOutput(run)
	}

	return adopt(), adopt
}

// A Keras script with verbose=0 prints one line, at its end. TestOutput_DoubtfulNameBesideTheShim
// has the same with a line before it.
func TestOutput_TheOnlyPrintedLineIsTheBest(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_accuracy", Goal: berth.GoalMaximize}
	o, _ := autoOutput(t, objective)

	for step, value := range []float64{0.5, 0.75, 0.625} {
		o.shim.take(fmt.Appendf(nil, `{"type": "metric", "step": %d, "metrics": {"val_accuracy": %g, "loss": 1}}`, step, value))
	}

	o.take(chunk(berth.Stdout, "Best val_accuracy: 0.7500\n", 1))

	rest, _ := o.finish()

	value, _ := o.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.625, *value, 0, "of %s", o.metrics.source("val_accuracy"))
	require.Len(t, rest.points, 2*3+1, "its curves, and the best")
}

// A PyTorch script writes val_loss by SummaryWriter, which keeps events for two minutes, and
// prints "Best val_loss: …" whenever it is lower. docs/job-contract.md: "the result does not
// depend on what Berth read first". The curve's own name is the objective in both orders.
func TestOutput_DoubtfulNameDoesNotDependOnWhatWasReadFirst(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
	events := func(o *output) {
		var scalars []tfevents.Scalar
		for step, value := range []float64{0.5, 0.25, 0.75} {
			scalars = append(scalars, tfevents.Scalar{Tag: "val_loss", Step: int64(step), Value: value, WallTime: float64(time.Now().Unix())})
		}

		o.events.take(&eventFile{path: "runs/x/events.out.tfevents.1.host"}, scalars)
	}
	printed := func(o *output) {
		o.take(chunk(berth.Stdout, "training\n", 1))
		o.take(chunk(berth.Stdout, "Best val_loss: 0.5000\n", 2))
		o.take(chunk(berth.Stdout, "Best val_loss: 0.2500\n", 3))
	}
	shim := func(o *output) {
		for step, value := range []float64{0.5, 0.25, 0.75} {
			o.shim.take(fmt.Appendf(nil, `{"type": "metric", "step": %d, "metrics": {"val_loss": %g}}`, step, value))
		}
	}

	for name, order := range map[string][]func(*output){
		"events first": {events, printed}, "log first": {printed, events}, // as a live worker reads them
		"shim first": {shim, printed}, "log before shim": {printed, shim},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o, _ := autoOutput(t, objective)
			for _, read := range order {
				read(o)
			}

			o.finish()

			value, _ := o.metrics.objective(objective)
			require.NotNil(t, value)
			require.InDelta(t, 0.75, *value, 0, "the last of the curve, of %s", o.metrics.source("val_loss"))
		})
	}
}

// The shim reports val_loss; "Best val_loss" is rightly none of it. The worker is killed, and
// the next one reads the log's next line before it reads the shim's file again.
func TestOutput_DoubtfulNameAfterAKilledWorker(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
	shim := func(o *output, steps int) {
		for step, value := range []float64{0.5, 0.25, 0.75}[:steps] {
			o.shim.take(fmt.Appendf(nil, `{"type": "metric", "step": %d, "metrics": {"val_loss": %g}}`, step, value))
		}
	}

	killed, adopt := autoOutput(t, objective)
	shim(killed, 2)
	killed.take(chunk(berth.Stdout, "training\n", 1))
	killed.take(chunk(berth.Stdout, "Best val_loss: 0.2500\n", 2))
	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	next := adopt()
	next.take(chunk(berth.Stdout, "training\n", 1)) // of the log's oldest line on
	next.take(chunk(berth.Stdout, "Best val_loss: 0.2500\n", 2))
	next.take(chunk(berth.Stdout, "Best val_loss: 0.2500 (epoch 2)\n", 3))
	shim(next, 3)
	next.finish()

	value, _ := next.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.75, *value, 0, "of %s", next.metrics.source("val_loss"))
}

// Nobody reports val_loss: "Best val_loss" is the objective, also of a worker of before, which
// wrote it down among what was printed, and there by its own name as well.
func TestOutput_DoubtfulNameThatNobodyElseReports(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyMean}

	killed, adopt := autoOutput(t, objective)
	killed.take(chunk(berth.Stdout, "Best val_loss: 0.5000\n", 1))
	killed.take(chunk(berth.Stdout, "Best val_loss: 0.2500\n", 2))
	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	for name, change := range map[string]func(*keptSeries){
		"as it is": func(*keptSeries) {},
		"by a worker of before": func(k *keptSeries) {
			k.Histories, k.Below = k.Below["doubtful stdout"], nil
		},
	} {
		kept, found := killed.run.dirs.reading("c")
		require.True(t, found)
		change(kept.Metrics)
		require.NoError(t, killed.run.dirs.keepReading(kept))

		next := adopt()
		next.take(chunk(berth.Stdout, "Best val_loss: 0.5000\n", 1))
		next.take(chunk(berth.Stdout, "Best val_loss: 0.2500\n", 2))
		next.take(chunk(berth.Stdout, "Best val_loss: 0.1250\n", 3))

		rest, _ := next.finish()
		value, _ := next.metrics.objective(objective)
		require.NotNil(t, value, name)
		require.InDelta(t, (0.5+0.25+0.125)/3, *value, 1e-9, name)
		require.Equal(t, berth.MetricsStdout, next.metrics.source("val_loss"), name)
		require.Len(t, rest.points, 2, "by both names")
		require.Equal(t, int64(3), rest.points[1].Step, name)
	}
}
