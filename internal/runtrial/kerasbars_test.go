package runtrial

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Keras' own lines are no report of the script's: evaluate prints under the names of fit. The
// shim knows both apart, and reported the last epoch of the fit. Where it reports nothing, as
// in a loop with a Progbar, the bars count, and what the script prints itself always does.
func TestOutput_KerasOwnLinesTakeNothingFromTheShim(t *testing.T) {
	t.Parallel()

	const (
		bar  = "━━━━━━━━━━━━━━━━━━━━"
		fit  = "Epoch 1/1\n90/90 " + bar + " 3s 30ms/step - accuracy: 0.9512 - loss: 0.2500 - val_accuracy: 0.9876 - val_loss: 0.0300\n"
		test = "10/10 " + bar + " 0s 3ms/step - accuracy: 0.6000 - loss: 0.9000\n"
		shim = `{"type": "metric", "step": 1, "metrics": {"accuracy": 0.9512, "loss": 0.25, "val_accuracy": 0.98764, "val_loss": 0.03}}`
	)

	for name, c := range map[string]struct {
		metric, shim, printed string
		want                  float64
		source                string
	}{
		"evaluate after fit":             {"loss", shim, fit + test, 0.25, berth.MetricsShim},
		"evaluate of Keras 2":            {"loss", shim, "10/10 [==============================] - 0s 3ms/step - loss: 0.9000 - accuracy: 0.6000\n", 0.25, berth.MetricsShim},
		"evaluate with verbose=2":        {"loss", shim, "90/90 - 3s - 30ms/step - accuracy: 0.9512 - loss: 0.2500\n10/10 - 0s - 3ms/step - accuracy: 0.6000 - loss: 0.9000\n", 0.25, berth.MetricsShim},
		"all digits":                     {"val_accuracy", shim, fit, 0.98764, berth.MetricsShim},
		"no shim":                        {"loss", "", fit, 0.25, berth.MetricsStdout},
		"the shim reports another":       {"loss", `{"type": "metric", "step": 1, "metrics": {"accuracy": 0.9512}}`, fit, 0.25, berth.MetricsStdout},
		"the script's own":               {"loss", shim, fit + test + "loss: 0.125\n", 0.125, berth.MetricsStdout},
		"the script's own, and no shim":  {"loss", "", "loss: 0.125\n" + test, 0.125, berth.MetricsStdout},
		"the best of what the bars have": {"loss", "", fit + "Best loss: 0.1\n", 0.25, berth.MetricsStdout},
	} {
		for _, first := range []string{"shim", "log"} {
			t.Run(name+", "+first+" first", func(t *testing.T) {
				t.Parallel()

				objective := berth.Objective{Metric: c.metric}
				o, _ := autoOutput(t, objective)

				if first == "shim" {
					o.shim.take([]byte(c.shim))
				}

				for i, line := range strings.SplitAfter(c.printed, "\n") {
					o.take(chunk(berth.Stdout, line, i))
				}

				if first == "log" {
					o.shim.take([]byte(c.shim))
				}

				o.finish()

				value, _ := o.metrics.objective(objective)
				require.NotNil(t, value)
				require.InDelta(t, c.want, *value, 1e-9)
				require.Equal(t, c.source, o.metrics.source(c.metric))
			})
		}
	}
}

// A sweep that names standard output gets what is printed there.
func TestOutput_KerasBarsOfASweepThatNamesStdout(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsStdout })

	o := newOutput(r.newRun(t))
	o.hearShim()
	o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"acc": 0.98764}}`))
	o.take(chunk(berth.Stdout, "90/90 ━━━━━ 3s 30ms/step - acc: 0.9876\n", 1))
	o.finish()
	require.Equal(t, berth.MetricsStdout, o.metrics.source("acc"))
}

// A worker is killed, and the bars that it read are counted once. Those of a worker of before
// stand among what the script printed, where the next ones have to go.
func TestOutput_KerasBarsAfterAKilledWorker(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "loss", Strategy: berth.StrategyMean}
	bar := func(o *output, epochs ...int) {
		for _, epoch := range epochs {
			o.take(chunk(berth.Stdout, fmt.Sprintf("90/90 ━━━━━ 3s 30ms/step - loss: 0.%d\n", epoch), epoch))
		}
	}

	killed, adopt := autoOutput(t, objective)
	bar(killed, 5, 6)
	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	for name, change := range map[string]func(*keptSeries){
		"as it is": func(*keptSeries) {},
		"by a worker of before": func(k *keptSeries) {
			k.Histories, k.Below, k.Bars = k.Below["bars of Keras"], nil, false
		},
	} {
		kept, found := killed.run.dirs.reading("c")
		require.True(t, found)
		change(kept.Metrics)
		require.NoError(t, killed.run.dirs.keepReading(kept))

		next := adopt()
		bar(next, 5, 6, 7)
		next.finish()

		value, _ := next.metrics.objective(objective)
		require.NotNil(t, value, name)
		require.InDelta(t, 0.6, *value, 1e-9, name)
	}
}
