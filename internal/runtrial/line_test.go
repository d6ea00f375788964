package runtrial

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// Python's logging writes to standard error: what it has is metrics without an objective, too,
// and beside one. Frameworks that log from C++ write no metrics.
func TestOutput_LoggingToStandardError(t *testing.T) {
	t.Parallel()

	for _, prefix := range []string{
		"INFO:root:", "WARNING:root:", "2026-01-01 12:00:00,123 - train - INFO - ", "2026-01-01 12:00:00,123 INFO ", "[12:00:00] [INFO] ",
		"2026-01-01 12:00:00.123 | INFO     | train:main:42 - ", "2026-01-01T12:00:00Z [info     ] ", "I1125 16:00:01.123456 140 train.py:12] ",
	} {
		_, rest := printedAs(t, nil, berth.Stderr, prefix+"epoch 1 loss=0.5\n"+prefix+"epoch 2 loss=0.4\n")
		require.Len(t, rest.points, 2, prefix)

		_, rest = printedAs(t, &berth.Objective{Metric: "val_loss"}, berth.Stderr, prefix+"epoch 1 train_loss=0.5\n"+prefix+"epoch 1 val_loss=0.4\n")
		require.Equal(t, map[string]int{"train_loss": 1, "val_loss": 1}, stepsOf(rest), prefix)
	}

	for _, line := range []string{
		"I0000 00:00:1764060000.1 140 gpu_device.cc:2020] Created device /job:localhost/device:GPU:0 with memory: 35\n", "loss=0.5\n",
		"2026-01-01 12:00:00.123456: I tensorflow/core/platform/x.cc:182] rebuild with flags: 1\n", "box:1:2 [0] NCCL INFO comm rank: 0\n",
	} {
		_, rest := printedAs(t, nil, berth.Stderr, line)
		require.Empty(t, rest.points, line)
	}
}

// ranked is the value that counts of what a job printed.
func ranked(t *testing.T, o berth.Objective, stream, text string) *float64 {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Objective = &o })

	out := newOutput(r.newRun(t))
	for i, line := range strings.SplitAfter(text, "\n") {
		out.take(chunk(stream, line, i))
	}

	out.finish()

	value, _ := out.metrics.objective(o)

	return value
}

// Programs print a metric in many ways, and beside it what is none of it: values of
// training, the best so far, how far a batch is.
func TestOutput_ObjectiveOfWhatIsPrinted(t *testing.T) {
	t.Parallel()

	const (
		last = berth.StrategyLast
		best = berth.StrategyBest
		mean = berth.StrategyMean
	)

	for name, c := range map[string]struct {
		metric   string
		strategy berth.Strategy
		text     string
		want     float64
	}{
		// The split is a word at the line's start.
		"best of a split":                 {"acc", best, "train Loss: 0.1000 Acc: 0.9900\nval Loss: 0.4000 Acc: 0.8500\n", 0.85},
		"last of a split":                 {"val_acc", last, "train Loss: 0.1 Acc: 0.99\nval Loss: 0.4 Acc: 0.85\n\nBest val Acc: 0.910000\n", 0.85},
		"split with a colon":              {"val_acc", last, "val: loss=0.4 acc=0.85\ntrain: loss=0.1 acc=0.99\n", 0.85},
		"bare name, train last":           {"acc", last, "val: loss=0.4 acc=0.85\ntrain: loss=0.1 acc=0.99\n", 0.85},
		"LightGBM":                        {"auc", best, "[100]\ttraining's auc: 0.99\tvalid_1's auc: 0.93\n", 0.93},
		"validation over test":            {"acc", best, "val: acc=0.85\ntest: acc=0.95\n", 0.85},
		"training is better than nothing": {"acc", last, "Training finished, acc=0.91\n", 0.91},
		"description of a bar":            {"acc", best, "train: 100%|█████| 9/9 [00:01<00:00, 9.1it/s, acc=0.99]\nval: 100%|█████| 9/9 [00:01<00:00, 9.1it/s, acc=0.85]\n", 0.85},

		// Words before a name make another metric of it.
		"best so far":           {"val_acc", last, "epoch 1 val_acc=0.91 (best val_acc=0.91)\nepoch 2 val_acc=0.85 (best val_acc=0.91)\n", 0.85},
		"best at the end":       {"val_loss", last, "epoch 1 val_loss: 0.21\nepoch 2 val_loss: 0.30\nBest val_loss: 0.21 (epoch 1)\n", 0.30},
		"best of several":       {"val_acc", last, "val_loss=0.3 val_acc=0.85\nBest: val_loss=0.21, val_acc=0.91\n", 0.85},
		"only the best":         {"val_acc", last, "New best val_acc: 0.91!\n", 0.91},
		"least and change":      {"val_loss", last, "val_loss: 0.30 | min val_loss: 0.21 | delta val_loss: 0.01\n", 0.30},
		"change":                {"val_acc", last, "val_acc=0.85 Δval_acc=-0.06\n", 0.85},
		"mean beside a batch's": {"loss", best, "Train Epoch: 1 [59520/60000 (99%)]\tLoss: 0.001234\n\nTest set: Average loss: 0.0265, Accuracy: 9913/10000 (99%)\n", 0.0265},
		"exact name later":      {"loss", mean, "Loss: 9\nloss: 0.5\nLoss: 8\nloss: 0.7\n", 0.6},

		// Bars that are drawn again.
		"Keras without terminal": {"accuracy", best, "\x1b[1m 1/60\x1b[0m \x1b[37m━━━━\x1b[0m 12s - accuracy: 1.0000\n\x1b[1m31/60\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━\x1b[0m 0s - accuracy: 0.8500\n" +
			"\x1b[1m60/60\x1b[0m \x1b[32m━━━━\x1b[0m 1s - accuracy: 0.9000\n", 0.90},
		"Keras 2": {"loss", best, " 1/60 [.....] - ETA: 12s - loss: 0.0200\n60/60 [=====] - 1s 2ms/step - loss: 0.3500\n", 0.35},
		"Rich":    {"val_acc", last, "Epoch 3/10 ━━━━ 100/100 0:00:05 • 19.1it/s val_acc: 0.85\nEpoch 4/10 ━━━━ 45/100 0:00:05 • 19.1it/s val_acc: 0.5\n", 0.85},
		"bar over epochs": {"val_acc", best, "\r  0%|     | 0/3 [00:00<?, ?it/s]\r 33%|█    | 1/3 [00:01<00:02,  1.00s/it, val_acc=0.91]" +
			"\r 67%|███  | 2/3 [00:02<00:01,  1.00s/it, val_acc=0.95]\r100%|█████| 3/3 [00:03<00:00,  1.00s/it, val_acc=0.85]\n", 0.95},
		"mean over epochs": {"val_acc", mean, "\r 50%|██   | 1/2 [00:01<00:02,  1.00s/it, val_acc=0.5]\r 50%|██   | 1/2 [00:01<00:02,  1.00s/it, val_acc=0.7]" +
			"\r100%|█████| 2/2 [00:02<00:00,  1.00s/it, val_acc=0.7]\r100%|█████| 2/2 [00:02<00:00,  1.00s/it, val_acc=0.7]\n", 0.6},
		"bar over batches": {"loss", best, "\r 33%|█    | 1/3 [00:00<00:00, 30.1it/s, loss=0.1]\r 67%|███  | 2/3 [00:00<00:00, 30.1it/s, loss=0.2]\r100%|█████| 3/3 [00:00<00:00, 30.1it/s, loss=0.3]\n", 0.3},
		"epochs of batches": {"loss", mean, "\rEpoch 1/2:  50%|██  | 1/2 [00:00<00:00, 30.1it/s, loss=9]\rEpoch 1/2: 100%|████| 2/2 [00:00<00:00, 30.1it/s, loss=0.4]" +
			"\rEpoch 2/2:  50%|██  | 1/2 [00:00<00:00, 30.1it/s, loss=9]\rEpoch 2/2: 100%|████| 2/2 [00:00<00:00, 30.1it/s, loss=0.2]\n", 0.3},
		"a bar that is removed": {"val_acc", last, "\r100%|██████████| 3/3 [00:03<00:00,  1.00s/it, val_acc=0.85]\r                    \r\n", 0.85},
		"a line over the last":  {"val_acc", last, "epoch 1 val_acc=0.850\repoch 2 val_acc=0.910\rTraining finished\n", 0.91},
		"a line that is erased": {"val_acc", last, "epoch 2 val_acc=0.910\r\x1b[K\n", 0.91},

		// Dicts and records.
		"a dict behind a pair": {"val_acc", last, "val_acc=0.91 params={'lr': 0.001, 'batch': 32}\n", 0.91},
		"a pair behind a dict": {"val_acc", last, "params={'lr': 0.001, 'net': 'small'} val_acc=0.91\n", 0.91},
		"NumPy in a dict":      {"accuracy", last, "{'accuracy': np.float64(0.91), 'f1': np.float32(0.88)}\n", 0.91},
		"tensors in a dict":    {"val_loss", last, "{'val_loss': tensor(0.3456), 'val_acc': tensor(0.91, device='cuda:0')}\n", 0.3456},
		"tensor":               {"val_loss", last, "epoch 3 val_loss: tensor(0.3456, device='cuda:0', grad_fn=<NllLossBackward0>)\n", 0.3456},
		"TensorFlow's tensor":  {"val_loss", last, "val_loss: <tf.Tensor: shape=(), dtype=float32, numpy=0.3456>\nval_loss: tf.Tensor(0.25, shape=(), dtype=float32)\n", 0.25},
		"array of one":         {"loss", last, "loss: [0.25]\nloss: [0.5, 0.7]\n", 0.25},
		"pprint":               {"accuracy", last, "{'accuracy': 0.91,\n 'f1': 0.88,\n 'loss': 0.25}\n", 0.91},
		"key in other words":   {"val_acc", last, "{'Validation Acc': 0.91}\n", 0.91},
		"logger's record":      {"val_acc", last, `{"level": "INFO", "lineno": 12, "message": "epoch 3 val_acc=0.91"}` + "\n", 0.91},
		"a record in a record": {"val_acc", last, `{"epoch": 3, "train": {"acc": 0.99}, "val": {"acc": 0.91}}` + "\n", 0.91},
		"of a record's split":  {"acc", best, `{"train": {"acc": 0.99}, "val": {"acc": 0.91}}` + "\n", 0.91},

		// Names.
		"ranking metric":       {"ndcg@10", last, "recall@10: 0.45 ndcg@10: 0.38\n", 0.38},
		"timm":                 {"Acc@1", last, "Test: [  48/48]  Time: 0.1 (0.2)  Loss:  0.8 (0.9)  Acc@1: 85.000 (79.300)  Acc@5: 97.0 (94.9)\n", 79.3},
		"mean and deviation":   {"accuracy", last, "Accuracy: 0.873 (0.028)\n", 0.873},
		"behind an epoch":      {"val_acc", last, "Epoch: [3/10] val_acc: 0.85 (0.91)\n", 0.85},
		"split in parentheses": {"val_accuracy", last, "Accuracy (train): 0.99 Accuracy (val): 0.91\n", 0.91},
		"logger with bars":     {"val_acc", last, "2026-01-01 12:00:00,123|INFO|val_acc: 0.91\n", 0.91},
		"abbreviated":          {"val_loss", last, "\tTrain Loss: 0.10 | Train Acc: 91.20%\n\t Val. Loss: 0.40 |  Val. Acc: 85.20%\n", 0.40},
		"validation":           {"val_loss", last, "Validation loss: 0.40\n", 0.40},
		"training":             {"train_loss", last, "Training loss: 0.40\n", 0.40},
		"test for a bare name": {"accuracy", last, "Test accuracy: 0.9734\n", 0.9734},
		"Markdown":             {"val_acc", last, "**val_acc**: 0.91\n", 0.91},
		"full-width colon":     {"val_acc", last, "val_acc：0.91\n", 0.91},

		// What may follow a value.
		"fraction":          {"accuracy", last, "Test set: Average loss: 0.0265, Accuracy: 9913/10000 (99%)\n", 0.9913},
		"error":             {"accuracy", last, "accuracy: 0.912±0.003\n", 0.912},
		"star":              {"val_acc", last, "val_acc: 0.91*\n", 0.91},
		"dots":              {"val_acc", last, "val_acc=0.92...\n", 0.92},
		"angle":             {"val_acc", last, "<Result val_acc=0.91>\n", 0.91},
		"percent and a bar": {"val_acc", last, "val_acc: 91.2%|val_loss: 0.4\n", 91.2},
	} {
		for _, stream := range []string{berth.Stdout, berth.Stderr} {
			t.Run(name+" on "+stream, func(t *testing.T) {
				t.Parallel()

				goal := berth.GoalMaximize
				if strings.Contains(c.metric, "loss") {
					goal = berth.GoalMinimize
				}

				value := ranked(t, berth.Objective{Metric: c.metric, Goal: goal, Strategy: c.strategy}, stream, c.text)
				require.NotNil(t, value)
				require.InDelta(t, c.want, *value, 1e-9)
			})
		}
	}
}

// What reads like the objective and is not, counts as none.
func TestOutput_NotTheObjective(t *testing.T) {
	t.Parallel()

	for metric, text := range map[string]string{
		"acc": "train Loss: 0.1 Acc: 0.99\n", "val_acc": "min val_acc=0.1, target val_acc: 0.9, Δval_acc=0.1, l'val_acc=1, a@val_acc=1\n",
		"loss": "31/60 [==>..] - loss: 0.1\n", "test": "12.5%|test.py:12] data/test.cc:3: done\n",
	} {
		require.Nil(t, ranked(t, berth.Objective{Metric: metric, Goal: berth.GoalMaximize}, berth.Stdout, text), text)
	}
}

// Docker passes on a long line in pieces. What a bar shows is the same wherever it cuts.
func TestOutput_BarInPieces(t *testing.T) {
	t.Parallel()

	bar := "\r 33%|█    | 1/3 [00:01<00:02,  1.00s/epoch, acc=0.91]\r 67%|███  | 2/3 [00:02<00:01,  1.00s/epoch, acc=0.95]\r 67%|███  | 2/3 [00:02<00:01,  1.00s/epoch, acc=0.9]\r\r"

	for cut := range len(bar) {
		o := newOutput(setup(t).newRun(t))
		for i, text := range []string{bar[:cut], bar[cut:], "\n"} {
			o.take(chunk(berth.Stderr, text, i))
		}

		rest, _ := o.finish()
		require.Len(t, rest.points, 3, "cut at %d", cut)
		require.InDelta(t, 0.95, rest.points[1].Value, 0)
	}
}

// A run that adopts the container knows what its name stands for, and where a bar was.
func TestOutput_ResumesWhatItTakesForTheObjective(t *testing.T) {
	t.Parallel()

	r := setup(t)
	adopt := func() *output {
		run := r.newRun(t)
		run.container.ID = "c"
		require.NoError(t, run.dirs.make(nil))

		return newOutput(run)
	}
	chunks := []string{
		"Acc: 0.99\n", "acc: 0.5\n", "{'f1': 1, 'epoch': 0.5}\n",
		"\r 1%|  | 1/9 [00:01<00:02,  1.00s/epoch, acc=0.6]\r 1%|  | 1/9 [00:01<00:02,  1.00s/epoch, acc=0.6]\r",
		"\r 2%|  | 2/9 [00:01<00:02,  1.00s/epoch, acc=0.7]\n", "Acc: 0.98\n", "{'f1': 1, 'epoch': 1.0}\n",
	}

	for cut := range chunks {
		o := adopt()
		for i, text := range chunks[:cut] {
			o.take(chunk(berth.Stdout, text, i))
		}

		require.NoError(t, o.write(t.Context()))
		o.keep()
	}

	o := adopt()
	for i, text := range chunks {
		o.take(chunk(berth.Stdout, text, i))
	}

	require.NoError(t, o.write(t.Context()))
	require.InDelta(t, 0.5+0.6+0.7, o.metrics.levels[ofPrinted].histories["acc"].Sum, 1e-9)
	require.InDelta(t, 0.98, o.metrics.levels[ofPrinted].histories["Acc"].Last, 0)

	stored := r.books.metrics(t)
	require.InDelta(t, 0.5, stored["acc/i"].Value, 0, "what was taken for it before is gone")
	require.Contains(t, stored, "f1/ii")
}

// A statement that failed holds points of what is the objective no more.
func TestSeries_ForgetsWhatCouldNotBeStored(t *testing.T) {
	t.Parallel()

	s := newSeries(newThinner(Bounds{}.orDefault(), 0), "acc")
	s.add(ofFile, metric("acc", 1, 0.99), metric("lr", 1, 0.1))
	away := s.pending()
	s.forget(ofFile, "acc")
	s.add(ofFile, metric("acc", 1, 0.5))
	s.restore(away)

	b := s.pending()
	require.Equal(t, []string{"acc"}, b.drop)
	require.Equal(t, []berth.MetricPoint{metric("lr", 1, 0.1), metric("acc", 1, 0.5)}, b.points)
}

// The shim reports the objective each epoch; the script prints the best at its end.
func TestOutput_DoubtfulNameBesideTheShim(t *testing.T) {
	t.Parallel()

	o := newOutput(setup(t).newRun(t))
	o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"acc": 0.5}}`))
	o.take(chunk(berth.Stdout, "Training finished\n", 1))
	o.take(chunk(berth.Stdout, "Best acc: 0.9\n", 2))
	o.finish()

	value, _ := o.metrics.objective(berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
	require.NotNil(t, value)
	require.InDelta(t, 0.5, *value, 0)
}

// A metrics file holds what programs print, too.
func TestReadFile_Forms(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"indented": "{\n  \"epoch\": 3,\n  \"note\": \"x\",\n  \"acc\": 0.91\n}\n", "Python": "{'epoch': 3, 'acc': 0.91}\n",
		"list": `[{"epoch": 1, "acc": 0.5}, {"epoch": 2, "acc": 0.91}]` + "\n", "pair": "acc=0.91\n", "byte order mark": "\xef\xbb\xbf{\"acc\": 0.91}\n",
		"nan": `{"acc": 0.91, "loss": nan}`, "too large": `{"acc": 0.91, "loss": 1e999}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o, path := fileOutput(t)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			o.file.read(math.MaxInt64)
			o.finish()

			value, _ := o.metrics.objective(berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
			require.NotNil(t, value)
			require.InDelta(t, 0.91, *value, 0)
			require.Empty(t, o.notes())
		})
	}

	o, path := fileOutput(t)
	require.NoError(t, os.WriteFile(path, []byte("epoch,acc\n1,0.5\n\n{\"acc\": 0.91}\n"), 0o600))
	o.file.read(math.MaxInt64)
	require.Equal(t, []string{`2 lines of its metrics file hold no metric that Berth can read, such as "epoch,acc"`}, o.notes())
}

// The message of a trial without a result says what was seen, and why it does not count.
func TestOutput_MessageWithoutAResult(t *testing.T) {
	t.Parallel()

	const pattern = `^METRIC (?P<name>\w+) (?P<value>\S+)$`

	for text, c := range map[string]struct{ stream, pattern, want string }{
		"METRIC: val_acc 0.91\nval_acc=0.91\n":                      {berth.Stdout, pattern, `metrics.pattern found nothing in what it printed; without a pattern Berth finds "val_acc"`},
		"METRIC loss 0.1\nval_acc=0.91\n":                           {berth.Stdout, pattern, `metrics.pattern found "loss" only; without a pattern Berth finds "val_acc"`},
		"\r100%|█| 3/3 [00:03<00:00,  1.00s/it, val_accuracy=0.85]": {berth.Stderr, "", `it printed "val_accuracy" on standard error`},
	} {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) {
			who.Spec.Objective = &berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize}
			who.Spec.Metrics.Pattern = c.pattern
		})

		out := newOutput(r.newRun(t))
		for i, line := range strings.SplitAfter(text, "\n") {
			out.take(chunk(c.stream, line, i))
		}

		out.finish()

		_, message := failure.Classify(failure.Evidence{
			Objective: "val_acc", FromLog: true, OwnPattern: c.pattern != "", Reported: out.metrics.names(), Printed: out.names.seen,
		})
		require.Contains(t, message, c.want, text)
	}
}

// The user said by the pattern which lines count.
func TestOutput_APatternIsAllThatCounts(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"FINAL val_acc=0.9\n{'val_acc': 0.1}\n", "FINAL val_acc=0.9\nsummary {'val_acc': 0.1}\n", "FINAL val_acc=0.9\n" + `{"message": "x", "val_acc": 0.1}` + "\n"} {
		r := setup(t)
		o := berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize}
		r.books.says(func(who *berth.Assignee) {
			who.Spec.Objective = &o
			who.Spec.Metrics.Source, who.Spec.Metrics.Pattern = berth.MetricsStdout, `^FINAL (?P<name>\w+)=(?P<value>\S+)$`
		})

		out := newOutput(r.newRun(t))
		for i, line := range strings.SplitAfter(text, "\n") {
			out.take(chunk(berth.Stdout, line, i))
		}

		out.finish()

		value, _ := out.metrics.objective(o)
		require.NotNil(t, value)
		require.InDelta(t, 0.9, *value, 0, "%q: the user said which lines count", text)
	}
}

// Python shows the line of the source that a warning came from.
func TestOutput_TheSourceLineOfAWarning(t *testing.T) {
	t.Parallel()

	const (
		loss = "/app/train.py:12: UserWarning: Using a target size (torch.Size([8])) that is different to the input size (torch.Size([8, 1])).\n" +
			"  loss = 0.5 * F.mse_loss(out, y)\n"
		accuracy = "/app/train.py:30: RuntimeWarning: invalid value encountered in scalar divide\n  accuracy = 1.0 - wrong / total\n"
	)

	for _, stream := range []string{berth.Stdout, berth.Stderr} {
		least := berth.Objective{Metric: "loss", Goal: berth.GoalMinimize}
		out, _ := printedAs(t, &least, stream, "loss: 0.9\n"+loss)
		value, _ := out.metrics.objective(least)
		require.NotNil(t, value)
		require.InDelta(t, 0.9, *value, 0, "0.5 is a factor in the program, on %s", stream)

		best := berth.Objective{Metric: "accuracy", Strategy: theBest, Goal: berth.GoalMaximize}
		out, _ = printedAs(t, &best, stream, accuracy+"accuracy: 0.8\n")
		value, _ = out.metrics.objective(best)
		require.NotNil(t, value)
		require.InDelta(t, 0.8, *value, 0, "1.0 is a number in the program, on %s", stream)
	}
}
