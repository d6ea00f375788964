package metrics_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

// The page of the job's contract has a table of lines; each is read as it says there.
func TestContract_LinesOfThePage(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("../../../docs/job-contract.md")
	require.NoError(t, err)

	page := string(data)

	for text, want := range map[string]float64{
		"val_acc=0.91": 0.91, "val_acc: 0.91": 0.91, "Final val_acc: 0.91": 0.91, "epoch 3 | loss 0.80 | val acc 0.91": 0.91, "val_acc 0.91 450": 0.91,
		`{"epoch": 3, "val_acc": 0.91}`: 0.91, `{'val': {'acc': np.float32(0.91)}}`: 0.91, "Validation acc: 0.91": 0.91, "val: acc=0.91": 0.91,
		"acc: 0.91 (val)": 0.91, "valid_0's acc: 0.91": 0.91, "val_acc: 91%": 91, "31/60 ━━━ - val_acc: 0.7": none, "Best val_acc: 0.95": none,
		"target val_acc: 0.99": none, "train, val acc: 0.99, 0.91": none, "val_acc: 1,234": none,
	} {
		requireLine(t, page, "val_acc", text, want)
	}

	requireLine(t, page, "accuracy", "Accuracy: 9913/10000 (99%)", 0.9913)
	requireLine(t, page, "Acc@1", "Test: [48/48] Acc@1: 85.0 (79.3)", 79.3)

	require.Contains(t, page, "`epoch,loss,val_acc`, and below it `3,0.80,0.91`")

	value, _ := ranked(berth.Stdout, rankedCase{"val_acc", theLast, "epoch,loss,val_acc\n3,0.80,0.91\n", none})
	require.InDelta(t, 0.91, value, 0)
}

func requireLine(t *testing.T, page, metric, text string, want float64) {
	t.Helper()
	require.Contains(t, page, "`"+strings.ReplaceAll(text, "|", `\|`)+"`")

	value, _ := ranked(berth.Stdout, rankedCase{metric, theLast, text, want})
	if math.IsNaN(want) {
		require.True(t, math.IsNaN(value), "%s: %v", text, value)
	} else {
		require.InDelta(t, want, value, 1e-9, text)
	}
}

// A line that has the objective and is not read comes with a pattern that reads it. Other names
// are no such lines.
func TestMissed_ComesWithAPattern(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]float64{
		"The val accuracy of epoch 3 is now 0.91": none, "val acc is 0.91": 0.91, "Validation acc came to 0.91": 0.91, "val_accuracy: 0.91": none, "train acc: 0.91": none,
	} {
		_, reader := ranked(berth.Stdout, rankedCase{"val_acc", theLast, text, none})
		require.Equal(t, math.IsNaN(want), reader.Near.First == "", text)

		if math.IsNaN(want) {
			continue
		}

		own := metrics.NewReader(reader.Near.Pattern, "val_acc").Read(berth.Stdout, text, noon)
		require.Len(t, own, 1, "%s: %s", text, reader.Near.Pattern)
		require.Equal(t, "val_acc", own[0].Name)
		require.InDelta(t, want, own[0].Value, 0)
	}
}

// A number within another name is no value: no pattern may read it.
func TestMissed_TakesNoNumberOfAName(t *testing.T) {
	t.Parallel()

	reader := metrics.NewReader("", "mAP")
	reader.Read(berth.Stdout, "mAP@0.5: 0.61", noon)
	require.Equal(t, "mAP@0.5: 0.61", reader.Near.First)
	require.Empty(t, reader.Near.Pattern)
}
