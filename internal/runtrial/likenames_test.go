package runtrial

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/tfevents"
)

// stepsOf counts the points of each metric that are to be stored.
func stepsOf(b batch) map[string]int {
	n := make(map[string]int)
	for _, p := range b.points {
		n[p.Name]++
	}

	return n
}

// score = model.evaluate(x_test, y_test, verbose=0); print("Test loss:", score[0]); print("Test accuracy:", score[1]).
// The shim or event files have the objective under its own name: it is theirs, and all their curves stay.
func TestOutput_ATestLineAtTheEndTakesNoCurve(t *testing.T) {
	t.Parallel()

	shim := func(o *output) {
		for step := 1; step <= 3; step++ {
			o.shim.take(fmt.Appendf(nil, `{"type": "metric", "step": %d, "metrics": {"accuracy": 0.%d, "loss": 0.%d}}`, step, 6+step, 5-step))
		}
	}
	events := func(o *output) {
		var scalars []tfevents.Scalar
		for step := 1; step <= 3; step++ {
			at := float64(time.Now().Unix())
			scalars = append(scalars, tfevents.Scalar{Tag: "accuracy", Step: int64(step), Value: 0.6 + float64(step)/10, WallTime: at},
				tfevents.Scalar{Tag: "loss", Step: int64(step), Value: 0.5 - float64(step)/10, WallTime: at})
		}

		o.events.take(&eventFile{path: "runs/x/events.out.tfevents.1.host"}, scalars)
	}

	for name, first := range map[string]func(*output){"shim": shim, "events": events} {
		for _, line := range []string{"Test accuracy: 0.5\n", "Accuracy: 0.5\n", "val accuracy: 0.5\n"} {
			for _, order := range []string{"first", "last"} {
				t.Run(name+" "+order+", "+line, func(t *testing.T) {
					t.Parallel()

					objective := berth.Objective{Metric: "accuracy", Goal: berth.GoalMaximize}
					o, _ := autoOutput(t, objective)

					if order == "first" {
						first(o)
					}

					o.take(chunk(berth.Stdout, "Test loss: 0.5\n", 1))
					o.take(chunk(berth.Stdout, line, 2))

					if order == "last" {
						first(o)
					}

					rest, _ := o.finish()
					steps := stepsOf(rest)
					require.Equal(t, 3, steps["loss"], "stored: %v, dropped: %v", steps, rest.drop)
					require.Equal(t, 3, steps["accuracy"])
					require.Equal(t, 1, steps["Test loss"])

					value, _ := o.metrics.objective(objective)
					require.NotNil(t, value)
					require.InDelta(t, 0.9, *value, 1e-9)
				})
			}
		}
	}
}

// The script's own exact name is its word, as before.
func TestOutput_AnExactLineAtTheEndIsTheObjective(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "accuracy", Goal: berth.GoalMaximize}
	o, _ := autoOutput(t, objective)
	o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"accuracy": 0.7}}`))
	o.take(chunk(berth.Stdout, "Accuracy: 0.4\naccuracy: 0.5\n", 1))
	o.finish()

	value, _ := o.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.5, *value, 0)
}

// A metrics file that is written again has each of its values once, also by a name that is
// only like the objective's.
func TestReadFile_WrittenAgainByALikeName(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyMean}
	o, _ := autoOutput(t, objective)

	text := ""
	for epoch, value := range []float64{0.5, 0.25, 0.75} {
		text += fmt.Sprintf(`{"epoch": %d, "val": {"loss": %g}}`+"\n", epoch+1, value)
		require.NoError(t, os.WriteFile(o.run.dirs.out+"/"+metricsName, []byte("{}\n"), 0o600))
		o.file.read(math.MaxInt64)
		require.NoError(t, os.WriteFile(o.run.dirs.out+"/"+metricsName, []byte(text), 0o600))
		o.file.read(math.MaxInt64)
	}

	o.finish()

	value, _ := o.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.5, *value, 1e-9)
}

// A worker of before kept a like name among what was printed. Its rows stay, and go once an
// exact name is there.
func TestOutput_LikeNameOfAWorkerOfBefore(t *testing.T) {
	t.Parallel()

	for name, exact := range map[string]bool{"nothing else": false, "the shim has it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyMean}
			killed, adopt := autoOutput(t, objective)
			killed.take(chunk(berth.Stdout, "Val Loss: 0.5\n", 1))
			require.NoError(t, killed.write(t.Context()))
			killed.keep()

			kept, found := killed.run.dirs.reading("c")
			require.True(t, found)

			kept.Metrics.Histories, kept.Metrics.Below = kept.Metrics.Below["doubtful stdout"], nil
			require.NoError(t, killed.run.dirs.keepReading(kept))
			require.NoError(t, killed.run.dirs.keepSources("c", storedNames{"val_loss": 1 << ofPrinted}))

			next := adopt()
			next.take(chunk(berth.Stdout, "Val Loss: 0.5\n", 1))
			next.take(chunk(berth.Stdout, "Val Loss: 0.25\n", 2))

			want := 0.375
			if exact {
				next.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"val_loss": 0.125}}`))

				want = 0.125
			}

			rest, _ := next.finish()
			value, _ := next.metrics.objective(objective)
			require.NotNil(t, value)
			require.InDelta(t, want, *value, 1e-9)
			require.Equal(t, exact, len(rest.drop) > 0, "what it stored")
		})
	}
}

// writer.add_scalar("Loss/val", …), as PyTorch's own pages write it, is what the same name is in print.
func TestEventFiles_TagsAreAsLikeAsPrintedNames(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
	at := float64(time.Now().Unix())
	take := func(o *output, tag string, values ...float64) {
		for i, value := range values {
			o.events.take(&eventFile{path: "runs/x/events.out.tfevents.1.host"}, []tfevents.Scalar{{Tag: tag, Step: int64(i + 1), Value: value, WallTime: at}})
		}
	}

	for _, tag := range []string{"val/loss", "Loss/val", "Val Loss", "validation_loss", "loss_validation"} {
		printed, _ := printedAs(t, &objective, berth.Stdout, tag+": 0.5\n")
		value, _ := printed.metrics.objective(objective)
		require.NotNil(t, value, "in print, "+tag)

		o, _ := autoOutput(t, objective)
		take(o, tag, 0.75, 0.5)

		rest, _ := o.finish()
		value, _ = o.metrics.objective(objective)
		require.NotNil(t, value, "as a tag, "+tag)
		require.InDelta(t, 0.5, *value, 0)
		require.Equal(t, berth.MetricsTensorBoard, o.metrics.source("val_loss"))
		require.Equal(t, map[string]int{"val_loss": 2, tag: 2}, stepsOf(rest))
	}

	for name, c := range map[string]struct {
		first, then string // a shim reports 0.25
		want        float64
	}{
		"its own name later": {"Loss/val", "val_loss", 0.625}, "its own name first": {"val_loss", "Loss/val", 0.75},
		"Keras' name later": {"Loss/val", "val_epoch_loss", 0.625}, "Keras' name first": {"val_epoch_loss", "Loss/val", 0.75},
		"another split": {"Loss/train", "Loss/test", 0.25}, "the shim's own name": {"Loss/val", "Loss/val", 0.25},
	} {
		o, _ := autoOutput(t, objective)
		o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"val_loss": 0.25}}`))
		take(o, c.first, 0.5, 0.75)
		take(o, c.then, 0.375, 0.625)
		o.finish()

		value, _ := o.metrics.objective(objective)
		require.NotNil(t, value, name)
		require.InDelta(t, c.want, *value, 0, name)
	}
}
