package runtrial

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
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

// printedAs is what an attempt of a sweep without a source came to, that printed a text.
// Without an objective o is nil.
func printedAs(t *testing.T, o *berth.Objective, stream, text string) (*output, batch) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, o })

	out := newOutput(r.newRun(t))
	for i, line := range strings.SplitAfter(text, "\n") {
		out.take(chunk(stream, line, i))
	}

	rest, _ := out.finish()

	return out, rest
}

func requireRanked(t *testing.T, cases map[string]rankedCase) {
	t.Helper()

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := berth.Objective{Metric: c.metric, Strategy: c.strategy, Goal: berth.GoalMaximize}
			if strings.Contains(strings.ToLower(c.metric), "loss") || strings.Contains(c.metric, "error") {
				o.Goal = berth.GoalMinimize
			}

			out, _ := printedAs(t, &o, berth.Stdout, c.text)
			value, _ := out.metrics.objective(o)
			if math.IsNaN(c.want) {
				require.Nil(t, value)

				return
			}

			require.NotNil(t, value, "it reported %q", out.metrics.names())
			require.InDelta(t, c.want, *value, 1e-9)
		})
	}
}

// A word in front of a name makes another metric of it.
func TestNames_AnotherWordIsAnotherMetric(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"VAE":                {"loss", theLast, "epoch 1 loss: 1.2, recon loss: 1.0, kl loss: 0.2\n", 1.2},
		"VAE, validation":    {"val_loss", theLast, "Val Loss: 1.2, Val KL Loss: 0.2\n", 1.2},
		"train, val, KL":     {"val_loss", theLast, "Epoch 1: Train Loss: 0.1, Val Loss: 1.2, KL Loss: 0.2\n", 1.2},
		"sklearn's report":   {"accuracy", theLast, "Accuracy: 0.93\nBalanced accuracy: 0.81\n", 0.93},
		"weighted":           {"f1", theLast, "F1: 0.7\nWeighted F1: 0.9\n", 0.7},
		"baseline":           {"rmse", theLast, "RMSE: 0.5\nBaseline RMSE: 0.9\n", 0.5},
		"top 5":              {"accuracy", theLast, "top1 accuracy: 0.8, top5 accuracy: 0.95\n", 0.8},
		"a number of its":    {"accuracy", theLast, "accuracy: 0.8\nTop 5 accuracy: 0.95\nClass 3 accuracy: 0.2\n", 0.8},
		"EMA":                {"val_acc", theLast, "val_acc: 0.9 (EMA val_acc: 0.95)\n", 0.9},
		"the epoch before":   {"val_loss", theLast, "Epoch 3: val_loss: 0.5 (was val_loss: 0.4)\n", 0.5},
		"before training":    {"val_loss", theLast, "val_loss: 0.5\nInitial val_loss: 2.3\n", 0.5},
		"mean squared error": {"error", theLast, "error: 0.12\nMean squared error: 0.5\n", 0.12},
		"its deviation":      {"accuracy", theLast, "accuracy: 0.9\nStandard deviation of accuracy: 0.01\n", 0.9},

		// Its own words, of which there may be several.
		"F1 Score":           {"f1_score", theLast, "Precision Score: 0.9, F1 Score: 0.8\n", 0.8},
		"best F1 Score":      {"f1_score", theLast, "F1 Score: 0.8\nBest F1 Score: 0.9\n", 0.8},
		"R2 Score":           {"r2_score", theLast, "R2 Score: 0.93\n", 0.93},
		"Balanced Accuracy":  {"balanced_accuracy", theLast, "Accuracy: 0.9\nBalanced Accuracy: 0.81\n", 0.81},
		"Word Error Rate":    {"word_error_rate", theLast, "Word Error Rate: 0.12\n", 0.12},
		"Mean Squared Error": {"mean_squared_error", theLast, "Mean Squared Error: 0.5\n", 0.5},
		"val of several":     {"val_kl_loss", theLast, "Val Loss: 1.2, KL Loss: 0.2\n", 0.2},
		"a dimension":        {"3d_map", theLast, "3D mAP: 0.4\n", 0.4},

		// Words that say nothing of which metric it is.
		"when":                  {"val_acc", theLast, "Epoch 3 val_acc: 0.8\nFinal val_acc: 0.85\n", 0.85},
		"a sentence before":     {"val_acc", theLast, "Epoch 3 is done. val_acc: 0.85\n", 0.85},
		"a sentence around":     {"val_acc", theLast, "Saved the model with val_acc: 0.85\n", 0.85},
		"structlog":             {"val_acc", theLast, "2026-01-01 12:00:00 [info     ] epoch finished by itself       epoch=3 val_acc=0.85\n", 0.85},
		"structlog, no epoch":   {"val_acc", theLast, "2026-01-01 12:00:00 [info     ] epoch ended       val_acc=0.85\n", 0.85},
		"a field before":        {"val_acc", theLast, "net=small val_acc=0.85\n", 0.85},
		"a quoted field before": {"val_acc", theLast, `level=info msg="epoch ended" val_acc=0.85` + "\n", 0.85},
		"a level before":        {"val_acc", theLast, "2026-01-01 12:00:00,123 INFO val_acc=0.85\n", 0.85},
		"a time before":         {"val_acc", theLast, "took 3.2s val_acc=0.85\n", 0.85},
		"a unit before":         {"loss", theLast, "GPU memory: 1,024 MiB loss: 0.3, time: 3.2 sec loss: 0.2\n", 0.2},
		"a verb behind":         {"accuracy", theLast, "The accuracy is: 0.93\n", 0.93},
		"a value":               {"val_loss", theLast, "Trial finished with value val_loss: 0.3\n", 0.3},
		"a logger's name":       {"loss", theLast, "2026-01-01 12:00:00,123 INFO my_model loss: 0.3\n", 0.3},
		"a sum":                 {"loss", theLast, "total loss: 1.2, recon loss: 1.0, kl loss: 0.2\n", 1.2},
		"a sum beside it":       {"loss", theLast, "loss: 0.4\ntotal loss: 1.2\n", 0.4},
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
		o := berth.Objective{Metric: metric, Goal: berth.GoalMaximize}
		out, _ := printedAs(t, &o, berth.Stdout, c.text)
		value, _ := out.metrics.objective(o)
		require.Nil(t, value, c.text)
		require.Equal(t, []string{c.name}, out.metrics.names())
	}
}

// docs/job-contract.md: "for acc first that of validation, then of test, never train acc", also
// where the split is outside of a dict, or a member of it.
func TestNames_SplitOutsideOrBesideADict(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"never train's":   {"acc", theBest, "train: {'acc': 0.99}\nval: {'acc': 0.9}\n", 0.9},
		"train last":      {"loss", theLast, "val: {'loss': 0.5}\ntrain: {'loss': 0.1}\n", 0.5},
		"val_loss":        {"val_loss", theLast, "val: {'loss': 0.5, 'acc': 0.9}\n", 0.5},
		"val metrics":     {"val_loss", theLast, "Validation metrics: {'loss': 0.5, 'acc': 0.9}\n", 0.5},
		"an own one":      {"loss", theLast, "{'loss': 0.5}\nepoch 3 train {'loss': 0.1}\n", 0.5},
		"the mean":        {"loss", theLast, "{'loss': 0.5}\nAverage: {'loss': 0.1}\n", 0.5},
		"field split":     {"acc", theBest, "{'split': 'val', 'acc': 0.9}\n{'split': 'train', 'acc': 0.99}\n", 0.9},
		"field phase":     {"acc", theLast, `{"phase": "val", "epoch": 1, "acc": 0.9}` + "\n" + `{"phase": "train", "epoch": 1, "acc": 0.99}` + "\n", 0.9},
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
		"own format":  {"accuracy", theLast, "2026-01-01 12:00:00,123 [INFO] train: accuracy: 0.91\n", 0.91},
		"by split":    {"acc", theLast, "INFO:val:acc=0.85\nINFO:train:acc=0.99\n", 0.85},
		"prose":       {"accuracy", theLast, "After training, accuracy: 0.93\n", 0.93},
		"sentence":    {"accuracy", theLast, "Finished Training. Accuracy: 0.93\n", 0.93},
		"bare behind": {"accuracy", theLast, "Train accuracy: 0.99, accuracy: 0.9\n", 0.9},
	})

	o := berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}
	for _, text := range []string{"[INFO] train acc: 0.99\n", "INFO Train Loss: 0.1, Acc: 0.99\n", "train - loss: 0.1 - acc: 0.99\n", "train: {'acc': 0.99}\n"} {
		out, _ := printedAs(t, &o, berth.Stdout, text)
		value, _ := out.metrics.objective(o)
		require.Nil(t, value, text)
	}
}

// Docker passes on a record of several lines line by line, in pieces too, and a worker may be
// killed in the middle of it.
func TestOutput_RecordOfSeveralLines(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_acc", Strategy: berth.StrategyMean, Goal: berth.GoalMaximize}
	chunks := []string{"val/acc=0.5\n", "{\n", "  \"train\": {\"acc\": 0.99},\n", "  \"val\"", ": {\n", "    \"acc\": 0.6\n", "  }\n", "}\n", "val/acc=1\n"}

	for cut := range chunks {
		first, adopt := autoOutput(t, objective)
		for i, text := range chunks[:cut] {
			first.take(chunk(berth.Stdout, text, i))
		}

		require.NoError(t, first.write(t.Context()))
		first.keep()

		next := adopt()
		for i, text := range chunks {
			next.take(chunk(berth.Stdout, text, i))
		}

		next.finish()

		value, _ := next.metrics.objective(objective)
		require.NotNil(t, value)
		require.InDelta(t, 0.7, *value, 1e-9, "cut at %d", cut)
	}
}
