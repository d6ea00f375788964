package metrics_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

const (
	theLast = berth.StrategyLast
	theBest = berth.StrategyBest
	theMean = berth.StrategyMean
)

// none is the value of a trial that is ranked by nothing.
var none = math.NaN()

// rankedCase is what a job prints, and what its trial is ranked by.
type rankedCase struct {
	metric   string
	strategy berth.Strategy
	text     string
	want     float64
}

// ranked is the value that counts of what a job printed, and the reader of it.
func ranked(stream string, c rankedCase) (value float64, reader *metrics.Reader) {
	var all []float64

	reader = metrics.NewReader("", c.metric)

	for line := range strings.SplitSeq(c.text, "\n") {
		points := reader.Read(stream, line, noon)
		if reader.Restarted {
			reader.Restarted, all = false, nil
		}

		for _, p := range points {
			if p.Name == c.metric {
				all = append(all, p.Value)
			}
		}
	}

	switch {
	case len(all) == 0:
		return none, reader
	case c.strategy == theLast:
		return all[len(all)-1], reader
	case c.strategy == theMean:
		sum := 0.0
		for _, v := range all {
			sum += v
		}

		return sum / float64(len(all)), reader
	case strings.Contains(strings.ToLower(c.metric), "loss"):
		return slices.Min(all), reader
	default:
		return slices.Max(all), reader
	}
}

func requireRanked(t *testing.T, cases map[string]rankedCase) {
	t.Helper()

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			value, reader := ranked(berth.Stdout, c)
			if math.IsNaN(c.want) {
				require.True(t, math.IsNaN(value), "%v", value)

				return
			}

			require.InDelta(t, c.want, value, 1e-9, "of %+v, missed %+v", reader.From, reader.Near)

			value, _ = ranked(berth.Stderr, c)
			require.InDelta(t, c.want, value, 1e-9, "loggers and bars write to standard error")
		})
	}
}

// Programs print a metric in many ways, and beside it what is none of it: values of training,
// the best so far, how far a batch is.
func TestNames_OfWhatIsPrinted(t *testing.T) {
	t.Parallel()

	const (
		last = theLast
		best = theBest
		mean = theMean
	)

	requireRanked(t, map[string]rankedCase{
		// The split is a word at the line's start.
		"best of a split":      {"acc", best, "train Loss: 0.1000 Acc: 0.9900\nval Loss: 0.4000 Acc: 0.8500\n", 0.85},
		"last of a split":      {"val_acc", last, "train Loss: 0.1 Acc: 0.99\nval Loss: 0.4 Acc: 0.85\n\nBest val Acc: 0.910000\n", 0.85},
		"LightGBM":             {"auc", best, "[100]\ttraining's auc: 0.99\tvalid_1's auc: 0.93\n", 0.93},
		"validation over test": {"acc", best, "val: acc=0.85\ntest: acc=0.95\n", 0.85},
		"description of a bar": {"acc", best, "train: 100%|█████| 9/9 [00:01<00:00, 9.1it/s, acc=0.99]\nval: 100%|█████| 9/9 [00:01<00:00, 9.1it/s, acc=0.85]\n", 0.85},

		// Words before a name make another metric of it.
		"best so far":           {"val_acc", last, "epoch 1 val_acc=0.91 (best val_acc=0.91)\nepoch 2 val_acc=0.85 (best val_acc=0.91)\n", 0.85},
		"best at the end":       {"val_loss", last, "epoch 1 val_loss: 0.21\nepoch 2 val_loss: 0.30\nBest val_loss: 0.21 (epoch 1)\n", 0.30},
		"least and change":      {"val_loss", last, "val_loss: 0.30 | min val_loss: 0.21 | delta val_loss: 0.01\n", 0.30},
		"change":                {"val_acc", last, "val_acc=0.85 Δval_acc=-0.06\n", 0.85},
		"mean beside a batch's": {"loss", best, "Train Epoch: 1 [59520/60000 (99%)]\tLoss: 0.001234\n\nTest set: Average loss: 0.0265, Accuracy: 9913/10000 (99%)\n", 0.0265},

		// Bars that are drawn again.
		"Keras without terminal": {"accuracy", best, "\x1b[1m 1/60\x1b[0m \x1b[37m━━━━\x1b[0m 12s - accuracy: 1.0000\n\x1b[1m31/60\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━\x1b[0m 0s - accuracy: 0.8500\n" +
			"\x1b[1m60/60\x1b[0m \x1b[32m━━━━\x1b[0m 1s - accuracy: 0.9000\n", 0.90},
		"Keras 2":               {"loss", best, " 1/60 [.....] - ETA: 12s - loss: 0.0200\n60/60 [=====] - 1s 2ms/step - loss: 0.3500\n", 0.35},
		"Rich":                  {"val_acc", last, "Epoch 3/10 ━━━━ 100/100 0:00:05 • 19.1it/s val_acc: 0.85\nEpoch 4/10 ━━━━ 45/100 0:00:05 • 19.1it/s val_acc: 0.5\n", 0.85},
		"bar over batches":      {"loss", best, "\r 33%|█    | 1/3 [00:00<00:00, 30.1it/s, loss=0.1]\r 67%|███  | 2/3 [00:00<00:00, 30.1it/s, loss=0.2]\r100%|█████| 3/3 [00:00<00:00, 30.1it/s, loss=0.3]\n", 0.3},
		"a bar that is removed": {"val_acc", last, "\r100%|██████████| 3/3 [00:03<00:00,  1.00s/it, val_acc=0.85]\r                    \r\n", 0.85},
		"a line that is erased": {"val_acc", last, "epoch 2 val_acc=0.910\r\x1b[K\n", 0.91},

		// Dicts and records.
		"a dict behind a pair": {"val_acc", last, "val_acc=0.91 params={'lr': 0.001, 'batch': 32}\n", 0.91},
		"a pair behind a dict": {"val_acc", last, "params={'lr': 0.001, 'net': 'small'} val_acc=0.91\n", 0.91},
		"NumPy in a dict":      {"accuracy", last, "{'accuracy': np.float64(0.91), 'f1': np.float32(0.88)}\n", 0.91},
		"tensor":               {"val_loss", last, "epoch 3 val_loss: tensor(0.3456, device='cuda:0', grad_fn=<NllLossBackward0>)\n", 0.3456},
		"TensorFlow's tensor":  {"val_loss", last, "val_loss: <tf.Tensor: shape=(), dtype=float32, numpy=0.3456>\nval_loss: tf.Tensor(0.25, shape=(), dtype=float32)\n", 0.25},
		"pprint":               {"accuracy", last, "{'accuracy': 0.91,\n 'f1': 0.88,\n 'loss': 0.25}\n", 0.91},
		"key in other words":   {"val_acc", last, "{'Validation Acc': 0.91}\n", 0.91},
		"of a record's split":  {"acc", best, `{"train": {"acc": 0.99}, "val": {"acc": 0.91}}` + "\n", 0.91},

		// Names.
		"ranking metric":       {"ndcg@10", last, "recall@10: 0.45 ndcg@10: 0.38\n", 0.38},
		"timm":                 {"Acc@1", last, "Test: [  48/48]  Time: 0.1 (0.2)  Loss:  0.8 (0.9)  Acc@1: 85.000 (79.300)  Acc@5: 97.0 (94.9)\n", 79.3},
		"mean and deviation":   {"accuracy", last, "Accuracy: 0.873 (0.028)\n", 0.873},
		"behind an epoch":      {"val_acc", last, "Epoch: [3/10] val_acc: 0.85 (0.91)\n", 0.85},
		"split in parentheses": {"val_accuracy", last, "Accuracy (train): 0.99 Accuracy (val): 0.91\n", 0.91},
		"logger with bars":     {"val_acc", last, "2026-01-01 12:00:00,123|INFO|val_acc: 0.91\n", 0.91},
		"abbreviated":          {"val_loss", last, "\tTrain Loss: 0.10 | Train Acc: 91.20%\n\t Val. Loss: 0.40 |  Val. Acc: 85.20%\n", 0.40},
		"test for a bare name": {"accuracy", last, "Test accuracy: 0.9734\n", 0.9734},
		"Markdown":             {"val_acc", last, "**val_acc**: 0.91\n", 0.91},

		// What may follow a value.
		"fraction": {"accuracy", last, "Test set: Average loss: 0.0265, Accuracy: 9913/10000 (99%)\n", 0.9913},
		"error":    {"accuracy", last, "accuracy: 0.912±0.003\n", 0.912},
		"star":     {"val_acc", last, "val_acc: 0.91*\n", 0.91},
	})
}

// A word in front of a name makes another metric of it.
func TestNames_AnotherWordIsAnotherMetric(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"VAE":              {"loss", theLast, "epoch 1 loss: 1.2, recon loss: 1.0, kl loss: 0.2\n", 1.2},
		"train, val, KL":   {"val_loss", theLast, "Epoch 1: Train Loss: 0.1, Val Loss: 1.2, KL Loss: 0.2\n", 1.2},
		"sklearn's report": {"accuracy", theLast, "Accuracy: 0.93\nBalanced accuracy: 0.81\n", 0.93},
		"a number of its":  {"accuracy", theLast, "accuracy: 0.8\nTop 5 accuracy: 0.95\nClass 3 accuracy: 0.2\n", 0.8},
		"EMA":              {"val_acc", theLast, "val_acc: 0.9 (EMA val_acc: 0.95)\n", 0.9},
		"before training":  {"val_loss", theLast, "val_loss: 0.5\nInitial val_loss: 2.3\n", 0.5},
		"its deviation":    {"accuracy", theLast, "accuracy: 0.9\nStandard deviation of accuracy: 0.01\n", 0.9},

		// Its own words, of which there may be several.
		"F1 Score":           {"f1_score", theLast, "Precision Score: 0.9, F1 Score: 0.8\n", 0.8},
		"best F1 Score":      {"f1_score", theLast, "F1 Score: 0.8\nBest F1 Score: 0.9\n", 0.8},
		"Mean Squared Error": {"mean_squared_error", theLast, "Mean Squared Error: 0.5\n", 0.5},
		"val of several":     {"val_kl_loss", theLast, "Val Loss: 1.2, KL Loss: 0.2\n", 0.2},

		// Words that say nothing of which metric it is.
		"when":                  {"val_acc", theLast, "Epoch 3 val_acc: 0.8\nFinal val_acc: 0.85\n", 0.85},
		"a sentence before":     {"val_acc", theLast, "Epoch 3 is done. val_acc: 0.85\n", 0.85},
		"a sentence around":     {"val_acc", theLast, "Saved the model with val_acc: 0.85\n", 0.85},
		"structlog":             {"val_acc", theLast, "2026-01-01 12:00:00 [info     ] epoch finished by itself       epoch=3 val_acc=0.85\n", 0.85},
		"a field before":        {"val_acc", theLast, "net=small val_acc=0.85\n", 0.85},
		"a quoted field before": {"val_acc", theLast, `level=info msg="epoch ended" val_acc=0.85` + "\n", 0.85},
		"a time before":         {"val_acc", theLast, "took 3.2s val_acc=0.85\n", 0.85},
		"a sum":                 {"loss", theLast, "total loss: 1.2, recon loss: 1.0, kl loss: 0.2\n", 1.2},
	})
}

// Words of a name that look like a unit, an epoch, a sentence or a setting.
func TestNames_WordsOfAName(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"terms of a loss":    {"loss", theLast, "loss: 0.6, policy loss: 0.1, value loss: 0.5\n", 0.6},
		"one of the terms":   {"value_loss", theLast, "policy loss: 0.1 value loss: 0.5\n", 0.5},
		"an abbreviation":    {"r2", theLast, "R2: 0.932, Adj. R2: 0.928\n", 0.932},
		"a letter":           {"acc", theLast, "acc: 0.7, S acc: 0.9, T acc: 0.7\n", 0.7},
		"tasks":              {"loss", theLast, "Loss: 1.2, Task 1 loss: 0.5, Task 2 loss: 0.7\n", 1.2},
		"ranks":              {"accuracy", theLast, "Rank-1 accuracy: 85.2, Rank-5 accuracy: 97.1\n", none},
		"shots":              {"5-shot accuracy", theLast, "1-shot accuracy: 0.48\n5-shot accuracy: 0.66\n", 0.66},
		"a setting before":   {"small_acc", theLast, "small_acc=0.9\nnet=small acc=0.85\n", 0.9},
		"a quote before":     {"small_acc", theLast, "small_acc=0.9\nsmall \"acc\": 0.85\n", 0.9},
		"its own filler":     {"final_accuracy", theLast, "Final accuracy: 0.93\n", 0.93},
		"its own report":     {"test_set_accuracy", theLast, "Test set accuracy: 0.9\n", 0.9},
		"about another one":  {"val_loss", theLast, "val loss: 0.5\nEpoch 2 (next validation in 4 epochs) loss: 0.01\nstep 101 valid tokens: 512, loss: 0.01\n", 0.5},
		"xgboost.cv":         {"test-auc", theLast, "[0]\ttrain-auc:0.99557+0.00236\ttest-auc:0.94720+0.01212\n", 0.94720},
		"LightGBM, two sets": {"auc", theBest, "[10]\tvalid_0's auc: 0.95\tvalid_1's auc: 0.85\n[20]\tvalid_0's auc: 0.96\tvalid_1's auc: 0.84\n", 0.85},
		"its first set":      {"valid_0_auc", theBest, "[10]\tvalid_0's auc: 0.95\tvalid_1's auc: 0.85\n", 0.95},
		"a sign of its own":  {"R²", theLast, "R²: 0.93\n", 0.93},
		"a bar's rate":       {"val_acc", theLast, "Epoch 3/10 ━━━━ 100/100 0:00:05 • 19.1it/s val_acc: 0.85\n", 0.85},
		"batches so far":     {"Acc@1", theBest, "Test: [10/48] Acc@1: 90.0 (88.0)\nTest: [48/48] Acc@1: 85.0 (79.3)\n", 79.3},
		"an underscore":      {"f1_score", theLast, "val: f1_score=0.9\n", 0.9},
		"an arrow":           {"val_loss", theLast, "val_loss: 0.40 -> 0.35\nval_loss: 0.40 → 0.35\n", none},
		"a slash":            {"acc", theLast, "acc: 0.5\nloss: 0.1 / acc: 0.95\n", 0.95},
		"a directory":        {"val_loss", theLast, "val_loss: 0.5\nSaved: ckpt/epoch=3-step=10-val_loss=0.21\n", 0.5},
		"a file":             {"val_loss", theLast, "val_loss=0.9\nSaving model to val_loss=0.31.pt, best-val_loss=0.31.weights.h5\n", 0.9},
		"an earlier run":     {"acc", theBest, "Previous run: acc=0.8\nacc: 0.7\n", 0.7},
	})
}

// Where only another metric is there, the trial is ranked by none, and that one has its full
// name.
func TestNames_AnotherMetricIsNoResult(t *testing.T) {
	t.Parallel()

	for metric, c := range map[string]struct{ text, name string }{
		"accuracy": {"Balanced accuracy: 0.81\n", "Balanced accuracy"}, "loss": {"Val KL Loss: 0.2\n", "Val KL Loss"}, "val_acc": {"Initial val_acc: 0.1\n", "Initial val_acc"},
		"score": {"F1 Score: 0.8\n", "F1 Score"}, "rmse": {"val: baseline RMSE: 0.9\n", "val baseline RMSE"},
	} {
		points := metrics.NewReader("", metric).Read(berth.Stdout, c.text, noon)
		require.Len(t, points, 1, c.text)
		require.Equal(t, c.name, points[0].Name)
	}
}

// docs/job-contract.md: "for acc first that of validation, then of test, never train acc", also
// where the split is outside of a dict, or a member of it.
func TestNames_SplitOutsideOrBesideADict(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"never train's":   {"acc", theBest, "train: {'acc': 0.99}\nval: {'acc': 0.9}\n", 0.9},
		"val_loss":        {"val_loss", theLast, "val: {'loss': 0.5, 'acc': 0.9}\n", 0.5},
		"an own one":      {"loss", theLast, "{'loss': 0.5}\nepoch 3 train {'loss': 0.1}\n", 0.5},
		"field split":     {"acc", theBest, "{'split': 'val', 'acc': 0.9}\n{'split': 'train', 'acc': 0.99}\n", 0.9},
		"field mode":      {"val_acc", theLast, `{"mode": "eval", "acc": 0.7}` + "\n" + `{"mode": "valid", "metrics": {"acc": 0.9}}` + "\n", 0.9},
		"no split":        {"acc", theLast, `{"mode": "fast", "acc": 0.9}` + "\n", 0.9},
		"json, indent=2":  {"acc", theBest, "{\n  \"train\": {\n    \"acc\": 0.99\n  },\n  \"val\": {\n    \"acc\": 0.9\n  }\n}\n", 0.9},
		"of an inner one": {"val_acc", theLast, "{\n  \"train\": {\n    \"acc\": 0.99\n  },\n  \"val\": {\n    \"acc\": 0.9\n  }\n}\n", 0.9},
		"with a list":     {"val_acc", theLast, "{\r\n  \"steps\": [\r\n    1,\r\n    2.5e-3\r\n  ],\r\n  \"val\": {\r\n    \"acc\": 0.9\r\n  }\r\n}\r\n", 0.9},
		"never closed":    {"acc", theLast, "{\n  'acc': 0.8,\nacc: 0.9\n", 0.9},
	})
}

// A logger's name and a sentence are not about a split.
func TestNames_ALoggerNamedTrain(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"basicConfig": {"acc", theLast, "INFO:train:acc=0.85\n", 0.85},
		"loguru":      {"accuracy", theLast, "2026-01-01 12:00:00.123 | INFO     | train:main:42 - accuracy: 0.91\n", 0.91},
		"prose":       {"accuracy", theLast, "After training, accuracy: 0.93\n", 0.93},
		"sentence":    {"accuracy", theLast, "Finished Training. Accuracy: 0.93\n", 0.93},
	})

	for _, text := range []string{"[INFO] train acc: 0.99\n", "INFO Train Loss: 0.1, Acc: 0.99\n", "train: {'acc': 0.99}\n"} {
		value, _ := ranked(berth.Stdout, rankedCase{"acc", theLast, text, none})
		require.True(t, math.IsNaN(value), text)
	}
}
