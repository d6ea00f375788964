package runtrial

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// docs/job-contract.md: the metrics file "may grow or be written again", and "a repeated name
// and step replaces the earlier one". A script writes its whole history anew each epoch.
func TestReadFile_MeanOfAFileThatIsWrittenAgain(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyMean}
	o, _ := autoOutput(t, objective)

	var lines []string
	for epoch, acc := range []float64{0.25, 0.5, 0.75} {
		lines = append(lines, fmt.Sprintf(`{"epoch": %d, "val_acc": %g}`, epoch+1, acc))
		temporary := filepath.Join(o.run.dirs.out, "new")
		require.NoError(t, os.WriteFile(temporary, []byte(`{"note": "epoch `+fmt.Sprint(epoch)+`"}`+"\n"+strings.Join(lines, "\n")+"\n"), 0o600))
		require.NoError(t, os.Rename(temporary, filepath.Join(o.run.dirs.out, metricsName)))
		o.file.read(math.MaxInt64) // at most once a tick: how often decides the result
	}

	o.finish()

	value, _ := o.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.5, *value, 1e-9, "the mean of three epochs")
}

// Each file is another writing of one; what is read of it is the same whatever the looks in between.
func TestReadFile_StepsThatAreWrittenAgain(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		files      []string
		mean, best float64
	}{
		"a step has another value": {[]string{`{"epoch": 1, "val_acc": 0.9}`, `{"epoch": 1, "val_acc": 0.5}`, "{\"epoch\": 1, \"val_acc\": 0.25}\n{\"epoch\": 2, \"val_acc\": 0.75}"}, 0.5, 0.75},
		"no steps":                 {[]string{`{"val_acc": 0.5}`, "# two\n{\"val_acc\": 0.5}\n{\"val_acc\": 0.7}", "# three\n{\"val_acc\": 0.5}\n{\"val_acc\": 0.7}\n{\"val_acc\": 0.9}"}, 0.7, 0.9},
		"a step twice":             {[]string{"{\"epoch\": 1, \"val_acc\": 0.5}\n{\"epoch\": 1, \"val_acc\": 0.7}", "# two\n{\"epoch\": 1, \"val_acc\": 0.5}\n{\"epoch\": 1, \"val_acc\": 0.7}"}, 0.7, 0.7},
		"by a likely name":         {[]string{`{"epoch": 1, "Val Acc": 0.9}`, "# two\n{\"epoch\": 1, \"Val Acc\": 0.9}\n{\"epoch\": 2, \"val_acc\": 0.5}"}, 0.5, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objective := berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyMean}
			o, _ := autoOutput(t, objective)

			for i, text := range c.files {
				if i < len(c.files)-1 { // the very last line lacks its end
					text += "\n"
				}

				temporary := filepath.Join(o.run.dirs.out, "new")
				require.NoError(t, os.WriteFile(temporary, []byte(text), 0o600))
				require.NoError(t, os.Rename(temporary, filepath.Join(o.run.dirs.out, metricsName)))
				o.file.read(math.MaxInt64)
			}

			o.finish()

			value, _ := o.metrics.objective(objective)
			require.NotNil(t, value)
			require.InDelta(t, c.mean, *value, 1e-9)

			objective.Strategy = berth.StrategyBest
			value, _ = o.metrics.objective(objective)
			require.NotNil(t, value)
			require.InDelta(t, c.best, *value, 1e-9)
		})
	}
}
