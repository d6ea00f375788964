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
	case strings.Contains(strings.ToLower(c.metric), "loss"):
		return slices.Min(all), reader
	default:
		return slices.Max(all), reader
	}
}

// Programs print a metric in many ways, and beside it what is none of it: values of training,
// the best so far, how far a batch is.
func TestNames(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]rankedCase{
		// The split is a word at the line's start.
		"validation over test": {"acc", theBest, "val: acc=0.85\ntest: acc=0.95\n", 0.85},
		"description of a bar": {"acc", theBest, "train: 100%|█████| 9/9 [00:01<00:00, 9.1it/s, acc=0.99]\nval: 100%|█████| 9/9 [00:01<00:00, 9.1it/s, acc=0.85]\n", 0.85},

		// Words before a name make another metric of it.
		"best at the end":       {"val_loss", theLast, "epoch 1 val_loss: 0.21\nepoch 2 val_loss: 0.30\nBest val_loss: 0.21 (epoch 1)\n", 0.30},
		"least and change":      {"val_loss", theLast, "val_loss: 0.30 | min val_loss: 0.21 | delta val_loss: 0.01\n", 0.30},
		"mean beside a batch's": {"loss", theBest, "Train Epoch: 1 [59520/60000 (99%)]\tLoss: 0.001234\n\nTest set: Average loss: 0.0265, Accuracy: 9913/10000 (99%)\n", 0.0265},

		// Bars that are drawn again.
		"Keras without terminal": {"accuracy", theBest, "\x1b[1m 1/60\x1b[0m \x1b[37m━━━━\x1b[0m 12s - accuracy: 1.0000\n\x1b[1m31/60\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━\x1b[0m 0s - accuracy: 0.8500\n" +
			"\x1b[1m60/60\x1b[0m \x1b[32m━━━━\x1b[0m 1s - accuracy: 0.9000\n", 0.90},
		"best of its own":       {"val_acc", theLast, "epoch 3 train_loss=0.31 best=0.28 val_acc=0.91\n", 0.91},
		"best with a colon":     {"val_loss", theLast, "train_loss: 0.31 | best: 0.93 | val_loss: 0.30\n", 0.30},
		"Keras 2, first steps":  {"loss", theBest, " 2/60 [>....] - ETA: 12s - loss: 0.0200\n60/60 [=====] - 1s 2ms/step - loss: 0.3500\n", 0.35},
		"Keras 2":               {"loss", theBest, " 1/60 [.....] - ETA: 12s - loss: 0.0200\n60/60 [=====] - 1s 2ms/step - loss: 0.3500\n", 0.35},
		"a bar that is removed": {"val_acc", theLast, "\r100%|██████████| 3/3 [00:03<00:00,  1.00s/it, val_acc=0.85]\r                    \r\n", 0.85},
		"a line that is erased": {"val_acc", theLast, "epoch 2 val_acc=0.910\r\x1b[K\n", 0.91},

		// Dicts and records.
		"a dict behind a pair": {"val_acc", theLast, "val_acc=0.91 params={'lr': 0.001, 'batch': 32}\n", 0.91},
		"a pair behind a dict": {"val_acc", theLast, "params={'lr': 0.001, 'net': 'small'} val_acc=0.91\n", 0.91},
		"TensorFlow's tensor":  {"val_loss", theLast, "val_loss: <tf.Tensor: shape=(), dtype=float32, numpy=0.3456>\nval_loss: tf.Tensor(0.25, shape=(), dtype=float32)\n", 0.25},

		// Names.
		"ranking metric":       {"ndcg@10", theLast, "recall@10: 0.45 ndcg@10: 0.38\n", 0.38},
		"mean and deviation":   {"accuracy", theLast, "Accuracy: 0.873 (0.028)\n", 0.873},
		"split in parentheses": {"val_accuracy", theLast, "Accuracy (train): 0.99 Accuracy (val): 0.91\n", 0.91},
		"logger with bars":     {"val_acc", theLast, "2026-01-01 12:00:00,123|INFO|val_acc: 0.91\n", 0.91},
		"abbreviated":          {"val_loss", theLast, "\tTrain Loss: 0.10 | Train Acc: 91.20%\n\t Val. Loss: 0.40 |  Val. Acc: 85.20%\n", 0.40},
		"Markdown":             {"val_acc", theLast, "**val_acc**: 0.91\n", 0.91},

		// What may follow a value.
		"error": {"accuracy", theLast, "accuracy: 0.912±0.003\n", 0.912},

		// A word in front of a name makes another metric of it.
		"VAE":              {"loss", theLast, "epoch 1 loss: 1.2, recon loss: 1.0, kl loss: 0.2\n", 1.2},
		"sklearn's report": {"accuracy", theLast, "Accuracy: 0.93\nBalanced accuracy: 0.81\n", 0.93},
		"a number of its":  {"accuracy", theLast, "accuracy: 0.8\nTop 5 accuracy: 0.95\nClass 3 accuracy: 0.2\n", 0.8},
		"EMA":              {"val_acc", theLast, "val_acc: 0.9 (EMA val_acc: 0.95)\n", 0.9},
		"its deviation":    {"accuracy", theLast, "accuracy: 0.9\nStandard deviation of accuracy: 0.01\n", 0.9},

		// Its own words, of which there may be several.
		"best F1 Score":  {"f1_score", theLast, "F1 Score: 0.8\nBest F1 Score: 0.9\n", 0.8},
		"val of several": {"val_kl_loss", theLast, "Val Loss: 1.2, KL Loss: 0.2\n", 0.2},

		// Words that say nothing of which metric it is.
		"a sentence before":     {"val_acc", theLast, "Epoch 3 is done. val_acc: 0.85\n", 0.85},
		"a sentence around":     {"val_acc", theLast, "Saved the model with val_acc: 0.85\n", 0.85},
		"structlog":             {"val_acc", theLast, "2026-01-01 12:00:00 [info     ] epoch finished by itself       epoch=3 val_acc=0.85\n", 0.85},
		"a field before":        {"val_acc", theLast, "net=small val_acc=0.85\n", 0.85},
		"a quoted field before": {"val_acc", theLast, `level=info msg="epoch ended" val_acc=0.85` + "\n", 0.85},
		"a sum":                 {"loss", theLast, "total loss: 1.2, recon loss: 1.0, kl loss: 0.2\n", 1.2},

		// Words of a name that look like a unit, an epoch, a sentence or a setting.
		"an abbreviation":    {"r2", theLast, "R2: 0.932, Adj. R2: 0.928\n", 0.932},
		"a letter":           {"acc", theLast, "acc: 0.7, S acc: 0.9, T acc: 0.7\n", 0.7},
		"ranks":              {"accuracy", theLast, "Rank-1 accuracy: 85.2, Rank-5 accuracy: 97.1\n", none},
		"shots":              {"5-shot accuracy", theLast, "1-shot accuracy: 0.48\n5-shot accuracy: 0.66\n", 0.66},
		"a split itself":     {"val", theLast, "train: 0.9, val: 0.8\n", 0.8},
		"a setting before":   {"small_acc", theLast, "small_acc=0.9\nnet=small acc=0.85\n", 0.9},
		"a quote before":     {"small_acc", theLast, "small_acc=0.9\nsmall \"acc\": 0.85\n", 0.9},
		"its own report":     {"test_set_accuracy", theLast, "Test set accuracy: 0.9\n", 0.9},
		"about another one":  {"val_loss", theLast, "val loss: 0.5\nEpoch 2 (next validation in 4 epochs) loss: 0.01\nstep 101 valid tokens: 512, loss: 0.01\n", 0.5},
		"xgboost.cv":         {"test-auc", theLast, "[0]\ttrain-auc:0.99557+0.00236\ttest-auc:0.94720+0.01212\n", 0.94720},
		"LightGBM, two sets": {"auc", theBest, "[10]\tvalid_0's auc: 0.95\tvalid_1's auc: 0.85\n[20]\tvalid_0's auc: 0.96\tvalid_1's auc: 0.84\n", 0.85},
		"an arrow":           {"val_loss", theLast, "val_loss: 0.40 -> 0.35\nval_loss: 0.40 → 0.35\n", none},
		"a slash":            {"acc", theLast, "acc: 0.5\nloss: 0.1 / acc: 0.95\n", 0.95},
		"a directory":        {"val_loss", theLast, "val_loss: 0.5\nSaved: ckpt/epoch=3-step=10-val_loss=0.21\n", 0.5},
		"a file":             {"val_loss", theLast, "val_loss=0.9\nSaving model to val_loss=0.31.pt, best-val_loss=0.31.weights.h5\n", 0.9},
		"an earlier run":     {"acc", theBest, "Previous run: acc=0.8\nacc: 0.7\n", 0.7},

		// docs/job-contract.md: "for acc first that of validation, then of test, never train acc", also
		// where the split is outside of a dict, or a member of it.
		"train, by a logger": {"acc", theLast, "[INFO] train acc: 0.99\nINFO Train Loss: 0.1, Acc: 0.99\n", none},
		"never train's":      {"acc", theBest, "train: {'acc': 0.99}\nval: {'acc': 0.9}\n", 0.9},
		"an own one":         {"loss", theLast, "{'loss': 0.5}\nepoch 3 train {'loss': 0.1}\n", 0.5},
		"field split":        {"acc", theBest, "{'split': 'val', 'acc': 0.9}\n{'split': 'train', 'acc': 0.99}\n", 0.9},
		"field mode":         {"val_acc", theLast, `{"mode": "eval", "acc": 0.7}` + "\n" + `{"mode": "valid", "metrics": {"acc": 0.9}}` + "\n", 0.9},
		"json, indent=2":     {"acc", theBest, "{\n  \"train\": {\n    \"acc\": 0.99\n  },\n  \"val\": {\n    \"acc\": 0.9\n  }\n}\n", 0.9},
		"of an inner one":    {"val_acc", theLast, "{\n  \"train\": {\n    \"acc\": 0.99\n  },\n  \"val\": {\n    \"acc\": 0.9\n  }\n}\n", 0.9},
		"never closed":       {"acc", theLast, "{\n  'acc': 0.8,\nacc: 0.9\n", 0.9},

		// A logger's name and a sentence are not about a split.
		"basicConfig": {"acc", theLast, "INFO:train:acc=0.85\n", 0.85},
		"loguru":      {"accuracy", theLast, "2026-01-01 12:00:00.123 | INFO     | train:main:42 - accuracy: 0.91\n", 0.91},
		"sentence":    {"accuracy", theLast, "Finished Training. Accuracy: 0.93\n", 0.93},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, stream := range []string{berth.Stdout, berth.Stderr} { // loggers and bars write to standard error
				value, reader := ranked(stream, c)
				require.Equal(t, math.IsNaN(c.want), math.IsNaN(value))

				if !math.IsNaN(c.want) {
					require.InDelta(t, c.want, value, 1e-9, "of %+v, missed %+v", reader.From, reader.Near)
				}
			}
		})
	}
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
