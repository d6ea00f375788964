package runtrial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// TestOutput_ObjectiveOfWhatIsPrinted knows "Best val_loss: 0.21 (epoch 1)" at the end. People
// also print the epoch first. All are the best so far, and none is the last epoch's value.
func TestOutput_BestAtTheEndInOtherWords(t *testing.T) {
	t.Parallel()

	for _, last := range []string{
		"Best epoch: 1, val_loss: 0.21", "Best model (epoch 1): val_loss=0.21", "Best result: val_loss=0.21", "Best Epoch: 1 - val_loss: 0.21",
		"Best checkpoint: epoch=1 val_loss=0.21", "Best metrics: {'val_loss': 0.21}", "Best: {'epoch': 1, 'val_loss': 0.21}", "val_loss: 0.21 (best)",
		"2026-01-02 03:04:05,678 - INFO - train - Best epoch: 1, val_loss: 0.21", `{"level": "INFO", "message": "Best epoch: 1, val_loss: 0.21"}`,
	} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()

			value := ranked(t, berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}, berth.Stdout, "epoch 1 val_loss: 0.21\nepoch 2 val_loss: 0.30\n"+last+"\n")
			require.NotNil(t, value)
			require.InDelta(t, 0.30, *value, 0)
		})
	}
}

// What only looks like a word about the best: it is of the newest epoch.
func TestOutput_NotOfTheBest(t *testing.T) {
	t.Parallel()

	for _, last := range []string{
		"epoch 2 val_loss: 0.30 (best)", "best_epoch=1 val_loss=0.30", "{'best_epoch': 1, 'val_loss': 0.30}", `{"best": {"val_loss": 0.21}, "val_loss": 0.30}`,
		"Best epoch: 1, val_loss: 0.21; current: val_loss: 0.30", "Best val_loss: 0.21, val_acc: 0.9, val_loss: 0.30", "epoch 2 best epoch: 1 val_loss: 0.30",
	} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()

			value := ranked(t, berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}, berth.Stdout, "epoch 1 val_loss: 0.21\n"+last+"\n")
			require.NotNil(t, value)
			require.InDelta(t, 0.30, *value, 0)
		})
	}
}

// A time or a sentence may be before the word.
func TestOutput_BestAtTheEndBehindOtherWords(t *testing.T) {
	t.Parallel()

	for _, last := range []string{
		"[12:30:01] Best epoch: 1, val_loss: 0.21", "2026-01-02 03:04:05 Best epoch: 1, val_loss: 0.21", "Training complete. Best epoch: 1, val_loss: 0.21",
		"Early stopping at epoch 2. Best epoch: 1, val_loss: 0.21", "Training finished in 12.3s, best epoch: 1, val_loss: 0.21", "Finished! Best model: epoch 1, val_loss: 0.21",
		"Best (epoch 1): val_loss: 0.21", "Best at epoch 1: val_loss: 0.21", "Best @ epoch 1: val_loss: 0.21", "val_loss: 0.21 (best, epoch 1)",
	} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()

			o := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
			out, _ := printedAs(t, &o, berth.Stdout, "epoch 1 val_loss: 0.21\nepoch 2 val_loss: 0.30\n"+last+"\n")
			value, _ := out.metrics.objective(o)
			require.NotNil(t, value)
			require.InDelta(t, 0.30, *value, 0, "the last epoch's")
		})
	}
}

// A dict is of the best, or holds no values, by what is before it; a record by its message.
func TestOutput_TheNameBeforeADict(t *testing.T) {
	t.Parallel()

	const losses = "val_loss: 0.5\nval_loss: 0.21\nval_loss: 0.3\n"

	requireRanked(t, map[string]rankedCase{
		"best_metrics":      {"val_loss", theLast, "{'val_loss': 0.30}\nbest_metrics: {'val_loss': 0.21}\n", 0.30},
		"best_result":       {"val_loss", theLast, "{'val_loss': 0.30}\nbest_result={'val_loss': 0.21}\n", 0.30},
		"event of a record": {"val_loss", theLast, `{"event": "epoch end", "val_loss": 0.30}` + "\n" + `{"event": "best model", "val_loss": 0.21}` + "\n", 0.30},
		"deep":              {"val_loss", theLast, losses + "Best: {\n  \"epoch\": 2,\n  \"scores\": {\n    \"val\": {\n      \"val_loss\": 0.21\n    }\n  }\n}\n", 0.3},
		"folds":             {"val_loss", theLast, losses + "Best results: {\n  \"fold_1\": {\n    \"val\": {\n      \"val_loss\": 0.21\n    }\n  },\n  \"fold_2\": {\n    \"val\": {\n      \"val_loss\": 0.25\n    }\n  }\n}\n", 0.3},
		"a history":         {"val_loss", theLast, losses + "Best run: {\n  \"id\": 3,\n  \"history\": [\n    {\"val_loss\": 0.21},\n    {\"val_loss\": 0.25}\n  ]\n}\n", 0.3},
		"weights":           {"loss", theBest, "loss weights: {'loss': 1.0, 'aux': 0.4}\nloss: 3.0\n", 3},
	})
}
