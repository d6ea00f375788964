package runtrial

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/masking"
	"github.com/berthml/berth/internal/metrictext"
)

const hub = "hf_Tp0KenValue42"

// A value that is not read would leave an older one as the result, without a word.
func TestValues_Forms(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"thousands":       {"val_loss", theLast, "val_loss: 980.10\nval_loss: 1,234.56\n", 1234.56},
		"millions":        {"throughput", theBest, "throughput: 998.2\nthroughput: 1,234,567\n", 1234567},
		"of a fraction":   {"accuracy", theLast, "accuracy: 9,913/10,000 (99%)\n", 0.9913},
		"as a text":       {"throughput", theLast, `{"throughput": "1,012.4"}` + "\n", 1012.4},
		"as a percentage": {"acc", theLast, `{"acc": "91.2%"}` + "\n", 91.2},
		"a colon behind":  {"val_acc", theLast, "Epoch 2 val_acc: 0.95\nEpoch 3 val_acc: 0.93: no improvement\n", 0.93},
		"change behind":   {"val_acc", theLast, "val_acc: 0.90\nval_acc: 0.91(+0.01)\n", 0.91},
		"(best)":          {"val_acc", theBest, "val_acc: 0.90\nval_acc: 0.91(best)\nval_acc: 0.89\n", 0.91},
		"tick":            {"val_acc", theBest, "val_acc: 0.90\nval_acc: 0.91✓\nval_acc: 0.89\n", 0.91},
		"down":            {"val_loss", theLast, "val_loss: 0.40\nval_loss: 0.35↓\n", 0.35},
		"from … to":       {"val_loss", theLast, "val_loss: 0.40 → 0.35\n", 0.35},
		"from -> to":      {"val_loss", theLast, "val_loss: 0.40->0.35\n", 0.35},
		"a decimal comma": {"val_loss", theLast, "val_loss: 0,2512\n", 0.2512},
		"of one and more": {"val_loss", theLast, "val_loss: 1,2512\n", 1.2512},
		"an exponent":     {"val_loss", theLast, "val_loss: 2,5e-05\n", 2.5e-05},
		"a list behind":   {"loss", theLast, "loss: 0.5,0.6\n", 0.5},
		"tqdm":            {"loss", theLast, "\rLoss: 0.9000:  50%|█████     | 4/9 [00:01<00:00, 9.1it/s]\rLoss: 0.5000: 100%|██████████| 9/9 [00:01<00:00, 9.1it/s]\n", 0.5},
		"tqdm, an epoch":  {"acc", theLast, "Epoch 3 | loss=0.4 | acc: 0.93: 100%|##########| 100/100 [00:10<00:00, 9.5it/s]\n", 0.93},
	})
}

// Digits that may be a list, a time or a version are no value, and that is said. A bar, a
// word and what is another metric are not meant.
func TestValues_ThatCannotBeRead(t *testing.T) {
	t.Parallel()

	o := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}

	for text, want := range map[string]string{
		"val_loss: 0,2\n":                         `a value of its objective could not be read and did not count: "val_loss: 0,2"; write numbers such as 0.91`,
		"val_loss: 1.234,56 (EUR)\n":              `"val_loss: 1.234,56"`,
		"val_loss: 1,234\n":                       `"val_loss: 1,234"`, // who prints 0,950 does not mean a thousand
		"val_loss: 12:30\nval_loss: 0.5.1\n":      `2 values of its objective could not be read and did not count, such as "val_loss: 12:30"`,
		"val_loss: [0.5, 0.7]\n":                  `"val_loss: [0.5,"`,
		`{"val_loss": "0.5 and 0.7"}` + "\n":      `"val_loss: 0.5"`,
		"val_loss: 0.3x\nrunning val_loss: 1,2\n": `a value of its objective`,
	} {
		out, _ := printedAs(t, &o, berth.Stdout, "val_loss: 0.75\n"+text)
		value, _ := out.metrics.objective(o)
		require.NotNil(t, value, text)
		require.InDelta(t, 0.75, *value, 0, text)
		require.Contains(t, strings.Join(out.notes(), "\n"), want, text)
	}

	out, _ := printedAs(t, &o, berth.Stdout, "val_loss: None\nval_loss: 0.75\nval_loss:  50%|███  | 1/2\nval_loss: improved\nloss: 1,2\n")
	require.Empty(t, out.notes())

	file, _ := autoOutput(t, o)
	require.NoError(t, os.WriteFile(file.run.dirs.out+"/"+metricsName, []byte("val_loss: 0.75\nval_loss: 1,2\n"), 0o600))
	file.file.read(math.MaxInt64)
	file.finish()
	require.Contains(t, strings.Join(file.notes(), "\n"), `"val_loss: 1,2"`)
}

// The newest report without a value leaves the one before as the result, and that is said. A
// program that validates every fifth epoch has such reports between.
func TestValues_TheNewestIsNone(t *testing.T) {
	t.Parallel()

	o := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}

	for text, want := range map[string]string{
		"val_loss: None\n":                       "None",
		"loss: 0.1, val_loss: N/A, lr: 0.1\n":    "N/A,",
		"val_loss = null\n":                      "null",
		`{"epoch": 2, "val_loss": null}` + "\n":  "null",
		`{"epoch": 2, "val_loss": "N/A"}` + "\n": "N/A",
		"{'epoch': 2, 'val_loss': None}\n":       "null",
		"val_loss: None\n" + "train loss: 0.1\n": "None",
	} {
		const note = `the newest report of its objective has no value and did not count: "val`

		for name, text := range map[string]string{"between": text + "val_loss: 0.75\n", "last": "val_loss: 0.75\n" + text} {
			out, _ := printedAs(t, &o, berth.Stdout, "val_loss: 0.9\n"+text)
			value, _ := out.metrics.objective(o)
			require.NotNil(t, value, text)
			require.InDelta(t, 0.75, *value, 0, text)

			if name == "between" {
				require.Empty(t, out.notes(), text)

				continue
			}

			require.Len(t, out.notes(), 1, text)
			require.Contains(t, out.notes()[0], note, text)
			require.Contains(t, out.notes()[0], want+`"`, text)
		}
	}

	requireRanked(t, map[string]rankedCase{
		"behind it":       {"acc", theLast, "val_loss: None acc: 0.85\n", 0.85},
		"a split, behind": {"val_loss", theLast, "Val: None, loss: 0.85\n", 0.85},
		"of val, behind":  {"val_loss", theLast, "val acc: None, loss: 0.85\n", 0.85},
	})

	for _, text := range []string{"val_loss: 0.75\nbest val_loss: None\n", "val_loss: 0.75\nval_loss_ema: None\n", "val_loss: 0.75\nval_loss: Nonesuch\n"} {
		out, _ := printedAs(t, &o, berth.Stdout, text)
		require.Empty(t, out.notes(), text)
	}

	acc := berth.Objective{Metric: "acc", Goal: berth.GoalMaximize} // the words before a record say of which data it is

	for text, notes := range map[string]int{
		"train: {'acc': None}\n": 0, "Best: {'acc': None}\n": 0, "acc_weights={'acc': None}\n": 0, "val: {'acc': None}\n": 1,
	} {
		out, _ := printedAs(t, &acc, berth.Stdout, "val: {'acc': 0.9}\n"+text)
		require.Len(t, out.notes(), notes, text)
	}

	file, _ := autoOutput(t, o)
	require.NoError(t, os.WriteFile(file.run.dirs.out+"/"+metricsName, []byte(`{"val_loss": 0.75}`+"\n"+`{"val_loss": null}`+"\n"), 0o600))
	file.file.read(math.MaxInt64)
	file.finish()
	require.Contains(t, strings.Join(file.notes(), "\n"), `"val_loss: null"`)
}

// A worker is killed: the next one knows what could not be read.
func TestValues_ThatCannotBeReadAfterAKilledWorker(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss"}
	killed, adopt := autoOutput(t, objective)
	killed.take(chunk(berth.Stdout, "val_loss: 1,2\n", 1))
	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	next := adopt()
	next.take(chunk(berth.Stdout, "val_loss: 1,2\n", 1))
	next.take(chunk(berth.Stdout, "val_loss: 1,3\n", 2))
	next.finish()
	require.Contains(t, strings.Join(next.notes(), "\n"), `2 values of its objective could not be read and did not count, such as "val_loss: 1,2"`)
}

// What is secret is hidden where a value is shown that could not be read.
func TestValues_ThatCannotBeReadAreMasked(t *testing.T) {
	t.Parallel()

	u := metrictext.UnreadValues{}
	u.Add("val_loss", " 1"+hub+" and more")
	require.Equal(t, 1, u.Times)
	require.NotContains(t, u.Note(masking.New([][]byte{[]byte(hub)}).Quote), hub[2:8])
}

// A number over another is a fraction only where both are whole.
func TestValues_TwoWithASlash(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"train/val":   {"loss", theLast, "Epoch 1 train/val loss: 0.30/0.40\n", none},
		"now/before":  {"loss", theLast, "Epoch 1 loss: 0.30/0.40\n", none},
		"now/best":    {"acc", theLast, "Epoch 1 acc: 91.20/93.40\n", none},
		"top 1/top 5": {"acc", theLast, "acc: 85.0/97.1\n", none},
	})
}

// The last threshold of a mean is no value of the metric at the first one.
func TestValues_ThresholdsAreOfTheName(t *testing.T) {
	t.Parallel()

	requireRanked(t, map[string]rankedCase{
		"of one":                 {"mAP@0.5", theLast, "mAP@0.5: 0.612 mAP@0.5:0.95: 0.446\n", 0.612},
		"of all":                 {"mAP@0.5:0.95", theLast, "mAP@0.5: 0.612 mAP@0.5:0.95: 0.446\n", 0.446},
		"equals":                 {"mAP@0.5", theLast, "mAP@0.5 = 0.612, mAP@0.5:0.95 = 0.446\n", 0.612},
		"of all, without zeroes": {"mAP@.5:.95", theLast, "mAP@.5: 0.612, mAP@.5:.95: 0.446\n", 0.446},
		"in percent":             {"mAP@50", theLast, "mAP@50: 0.612, mAP@50:95: 0.446\n", 0.612},
	})
}

// Several names with several values are not guessed at: the last one is not the first value's.
func TestValues_OfSeveralNames(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"precision, recall, f1": {"f1", theLast, "precision, recall, f1: 0.9 0.8 0.85\n", none},
		"with commas":           {"f1", theLast, "precision, recall, f1: 0.90, 0.80, 0.85\n", none},
		"print of evaluate":     {"test_acc", theLast, "test loss, test acc: 0.09 0.97\n", none},
		"train, val":            {"val_acc", theLast, "train, val acc: 0.99, 0.85\n", none},
		"train/val":             {"acc", theLast, "Train/Val acc: 0.99 / 0.85\n", none},
		"train/test":            {"accuracy", theLast, "Train/Test accuracy: 0.99 0.85\n", none},
	})
}

// C and C++ print -nan (XGBoost, LightGBM, llm.c): it diverged, and no earlier value is the result.
func TestValues_MinusNaN(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"val_loss: 0.3\nval_loss: -nan\n", "[0]\tval_loss:0.3\n[1]\tval_loss:-nan\n", "{'val_loss': 0.3}\n{'val_loss': -nan}\n", `{"val_loss": 0.3}` + "\n" + `{"val_loss": "-nan"}` + "\n",
	} {
		o := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
		out, _ := printedAs(t, &o, berth.Stdout, text)
		value, status := out.metrics.objective(o)
		require.Nil(t, value, "%q: it diverged, and 0.3 is the epoch before", text)
		require.Equal(t, berth.MetricNaN, status, text)
	}
}

// timm, torchvision, DeiT, DETR and PyTorch's ImageNet example print "now (mean)" behind a counter of
// batches; elsewhere "0.873 (0.028)" is a mean with its deviation.
func TestValues_AverageMeter(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"timm": {"Acc@1", theLast, "Test: [  48/48]  Time: 0.1 (0.2)  Loss:  0.8 (0.9)  Acc@1: 85.000 (79.300)  Acc@5: 97.0 (94.9)\n", 79.3},
		"torchvision": {"acc1", theBest, "Test:  [ 0/98]  eta: 0:01:00  loss: 0.9 (0.9)  acc1: 98.1250 (98.1250)  time: 0.6  data: 0.5  max mem: 500\n" +
			"Test:  [97/98]  eta: 0:00:00  loss: 0.9 (0.9)  acc1: 78.1250 (81.1250)  time: 0.6  data: 0.5  max mem: 500\n", 81.125},
	})
}

// A meter of batches may have one of those words in its name.
func TestValues_AMeterOfBatchesNamedAsACounter(t *testing.T) {
	t.Parallel()

	cases := map[string]rankedCase{}
	for _, meter := range []string{"Test round:", "Task:", "Multi-task:", "Ground"} {
		cases[meter] = rankedCase{"loss", theLast, meter + " [90/90] loss: 0.5 (0.7)\n", 0.7}
	}

	requireRanked(t, cases)
}

// What counts other things than batches has a mean with its deviation behind it.
func TestValues_ADeviationBehindACounter(t *testing.T) {
	t.Parallel()

	cases := make(map[string]rankedCase)
	for _, counter := range []string{
		"Fold [5/5]", "Fold [3/5]", "K-Fold: [3/5]", "Run [1/5]", "Trial [3/10]", "trials: [10/10]", "Seed [1/3]", "Repeat [2/3]", "Repetition [2/3]", "Episode [10/10]",
		"Round [3/10]", "CV [3/5]", "Task [3/5]", "Generation [3/9]", "Epoch [3/9]", "Run: [5/5]", "Repeat: [3/3]", "Episode # [10/10]", "Generation - [9/9]", "Run [1/5] Fold [2/5] Epoch [3/9]",
	} {
		cases[counter] = rankedCase{"accuracy", theLast, counter + " accuracy: 0.873 (0.028)\n", 0.873}
	}

	for _, counter := range []string{"[48/48]", "Test: [47/48]", "Fold [1/5] Test: [48/48]", "Run [1/5] Fold [2/5] Epoch [3/9] [48/48]", "Epoch: [3][48/48]", "Iter [48/48]"} {
		cases[counter+", a mean"] = rankedCase{"accuracy", theLast, counter + " accuracy: 0.9 (0.873)\n", 0.873}
	}

	requireRanked(t, cases)
}

// What an arrow leads to may be something else.
func TestValues_AnArrowToSomethingElse(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"epochs": {"acc", theLast, "acc: 0.85 -> 12 epochs without improvement\n", 0.85},
		"time":   {"loss", theLast, "loss: 0.9\nloss: 0.35 -> 12.3s\n", 0.35},
	})
}

// A sign or a bracket may be before a number.
func TestValues_SignsBefore(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"minus of Unicode": {"reward", theLast, "reward: -10\nreward: −12.5\n", -12.5},
		"about":            {"acc", theLast, "acc: 0.5\nacc: ~0.9\n", 0.9},
		"in parentheses":   {"acc", theLast, "acc: 0.5\nacc: (0.9)\n", 0.9},
	})
}
