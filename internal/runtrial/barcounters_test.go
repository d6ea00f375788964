package runtrial

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// lightningBars is what tqdm 4.70 writes for the calls of Lightning 2.5's TQDMProgressBar: two
// batches of training and two of validation in each of three epochs, with val_loss 0.9, 0.5
// and 0.4. A validation's bar has no total when it is made: "Validation: |          | 0/? [".
const lightningBars = "" +
	"\r" +
	"\rSanity Checking: |          | 0/? [00:00<?, ?it/s]" +
	"\rSanity Checking: |          | 0/? [00:00<?, ?it/s]" +
	"\rSanity Checking DataLoader 0:   0%|          | 0/2 [00:00<?, ?it/s]" +
	"\rSanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 13842.59it/s]" +
	"\rSanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 17403.75it/s]" +
	"\r                                                                              " +
	"\r" +
	"\rTraining: |          | 0/? [00:00<?, ?it/s]" +
	"\rTraining: |          | 0/? [00:00<?, ?it/s]" +
	"\rEpoch 0:   0%|          | 0/2 [00:00<?, ?it/s]" +
	"\rEpoch 0:  50%|█████     | 1/2 [00:00<00:00, 462.64it/s]" +
	"\rEpoch 0:  50%|█████     | 1/2 [00:00<00:00, 447.39it/s, train_loss=2.900]" +
	"\rEpoch 0: 100%|██████████| 2/2 [00:00<00:00, 459.88it/s, train_loss=2.900]" +
	"\rEpoch 0: 100%|██████████| 2/2 [00:00<00:00, 455.73it/s, train_loss=2.800]\n" +
	"\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation DataLoader 0:   0%|          | 0/2 [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 468.06it/s]\x1b[A\n" +
	"\rValidation DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 470.71it/s]\x1b[A\n" +
	"\r                                                                       \x1b[A" +
	"\rEpoch 0: 100%|██████████| 2/2 [00:00<00:00, 227.67it/s, train_loss=2.800, val_loss=0.900]" +
	"\rEpoch 0: 100%|██████████| 2/2 [00:00<00:00, 226.77it/s, train_loss=2.800, val_loss=0.900]" +
	"\rEpoch 0:   0%|          | 0/2 [00:00<?, ?it/s, train_loss=2.800, val_loss=0.900]         " +
	"\rEpoch 1:   0%|          | 0/2 [00:00<?, ?it/s, train_loss=2.800, val_loss=0.900]" +
	"\rEpoch 1:  50%|█████     | 1/2 [00:00<00:00, 468.17it/s, train_loss=2.800, val_loss=0.900]" +
	"\rEpoch 1:  50%|█████     | 1/2 [00:00<00:00, 456.90it/s, train_loss=1.900, val_loss=0.900]" +
	"\rEpoch 1: 100%|██████████| 2/2 [00:00<00:00, 465.41it/s, train_loss=1.900, val_loss=0.900]" +
	"\rEpoch 1: 100%|██████████| 2/2 [00:00<00:00, 461.62it/s, train_loss=1.800, val_loss=0.900]\n" +
	"\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation DataLoader 0:   0%|          | 0/2 [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 468.69it/s]\x1b[A\n" +
	"\rValidation DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 471.54it/s]\x1b[A\n" +
	"\r                                                                       \x1b[A" +
	"\rEpoch 1: 100%|██████████| 2/2 [00:00<00:00, 229.74it/s, train_loss=1.800, val_loss=0.500]" +
	"\rEpoch 1: 100%|██████████| 2/2 [00:00<00:00, 228.95it/s, train_loss=1.800, val_loss=0.500]" +
	"\rEpoch 1:   0%|          | 0/2 [00:00<?, ?it/s, train_loss=1.800, val_loss=0.500]         " +
	"\rEpoch 2:   0%|          | 0/2 [00:00<?, ?it/s, train_loss=1.800, val_loss=0.500]" +
	"\rEpoch 2:  50%|█████     | 1/2 [00:00<00:00, 468.74it/s, train_loss=1.800, val_loss=0.500]" +
	"\rEpoch 2:  50%|█████     | 1/2 [00:00<00:00, 459.85it/s, train_loss=0.900, val_loss=0.500]" +
	"\rEpoch 2: 100%|██████████| 2/2 [00:00<00:00, 467.54it/s, train_loss=0.900, val_loss=0.500]" +
	"\rEpoch 2: 100%|██████████| 2/2 [00:00<00:00, 463.48it/s, train_loss=0.800, val_loss=0.500]\n" +
	"\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation DataLoader 0:   0%|          | 0/2 [00:00<?, ?it/s]\x1b[A\n" +
	"\rValidation DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 469.27it/s]\x1b[A\n" +
	"\rValidation DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 471.24it/s]\x1b[A\n" +
	"\r                                                                       \x1b[A" +
	"\rEpoch 2: 100%|██████████| 2/2 [00:00<00:00, 230.20it/s, train_loss=0.800, val_loss=0.400]" +
	"\rEpoch 2: 100%|██████████| 2/2 [00:00<00:00, 229.47it/s, train_loss=0.800, val_loss=0.400]" +
	"\rEpoch 2: 100%|██████████| 2/2 [00:00<00:00, 228.57it/s, train_loss=0.800, val_loss=0.400]\n"

// What tqdm 4.70 writes of
//
//	for e in (bar := tqdm(range(4), desc="Epochs")): ...; bar.set_postfix(val_acc=v[e], loss=1 - v[e])
//
// with 0.9, 0.5, 0.7 and 0.8, and 20 ms for an epoch: it draws its counter every 0.1 s only.
const fastEpochs = "" +
	"\rEpochs:   0%|          | 0/4 [00:00<?, ?it/s]" +
	"\rEpochs:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.1, val_acc=0.9]" +
	"\rEpochs:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.5, val_acc=0.5]" +
	"\rEpochs:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.3, val_acc=0.7]" +
	"\rEpochs:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.2, val_acc=0.8]" +
	"\rEpochs: 100%|██████████| 4/4 [00:00<00:00, 48.98it/s, loss=0.2, val_acc=0.8]\n"

// The same of epochs of 0.3 s, with a bar of batches in each that is removed, with 0.9, 0.5
// and 0.7.
const nestedEpochs = "" +
	"\rEpochs:   0%|          | 0/3 [00:00<?, ?it/s]\n" +
	"\rtrain:   0%|          | 0/5 [00:00<?, ?it/s]\x1b[A\n" +
	"\rtrain:  40%|████      | 2/5 [00:00<00:00, 19.95it/s]\x1b[A\n" +
	"\rtrain:  80%|████████  | 4/5 [00:00<00:00, 19.92it/s]\x1b[A\n" +
	"\r                                                    \x1b[A" +
	"\rEpochs:   0%|          | 0/3 [00:00<?, ?it/s, val_acc=0.9]" +
	"\rEpochs:  33%|███▎      | 1/3 [00:00<00:00,  3.93it/s, val_acc=0.9]\n" +
	"\rtrain:   0%|          | 0/5 [00:00<?, ?it/s]\x1b[A\n" +
	"\rtrain:  40%|████      | 2/5 [00:00<00:00, 19.96it/s]\x1b[A\n" +
	"\rtrain:  80%|████████  | 4/5 [00:00<00:00, 19.93it/s]\x1b[A\n" +
	"\r                                                    \x1b[A" +
	"\rEpochs:  33%|███▎      | 1/3 [00:00<00:00,  3.93it/s, val_acc=0.5]" +
	"\rEpochs:  67%|██████▋   | 2/3 [00:00<00:00,  3.96it/s, val_acc=0.5]\n" +
	"\rtrain:   0%|          | 0/5 [00:00<?, ?it/s]\x1b[A\n" +
	"\rtrain:  40%|████      | 2/5 [00:00<00:00, 19.96it/s]\x1b[A\n" +
	"\rtrain:  80%|████████  | 4/5 [00:00<00:00, 19.94it/s]\x1b[A\n" +
	"\r                                                    \x1b[A" +
	"\rEpochs:  67%|██████▋   | 2/3 [00:00<00:00,  3.96it/s, val_acc=0.7]" +
	"\rEpochs: 100%|██████████| 3/3 [00:00<00:00,  3.97it/s, val_acc=0.7]" +
	"\rEpochs: 100%|██████████| 3/3 [00:00<00:00,  3.96it/s, val_acc=0.7]\n"

// What tqdm 4.70 writes of bars with leave=False in two epochs, with val_loss 0.9 and 0.2. The
// second validation is faster than mininterval: its only values stand at 0/4.
const erasedBars = "" +
	"\rValid:   0%|          | 0/4 [00:00<?, ?it/s]" +
	"\rValid:   0%|          | 0/4 [00:00<?, ?it/s, val_loss=0.9]" +
	"\rValid:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s, val_loss=0.9]" +
	"\rValid:  50%|█████     | 2/4 [00:00<00:00,  6.59it/s, val_loss=0.9]" + erasedBar +
	"\rEpoch 1:   0%|          | 0/8 [00:00<?, ?it/s]" +
	"\rEpoch 1: 100%|██████████| 8/8 [00:00<00:00, 481.38it/s]\n" +
	"\rValid:   0%|          | 0/4 [00:00<?, ?it/s]" +
	"\rValid:   0%|          | 0/4 [00:00<?, ?it/s, val_loss=0.2]" + erasedBar +
	"\rTest:   0%|          | 0/8 [00:00<?, ?it/s]" +
	"\rTest: 100%|██████████| 8/8 [00:00<00:00, 483.44it/s]\n"

// erasedBar is how tqdm takes a bar away.
const erasedBar = "\r                                                                  \r"

// erasedCounts is the same of a generator, with 0.9 and 0.2.
const erasedCounts = "" +
	"\rvalid: 0it [00:00, ?it/s]\rvalid: 0it [00:00, ?it/s, val_loss=0.9]\rvalid: 3it [00:00, 9.1it/s, val_loss=0.9]" + erasedBar +
	"\rvalid: 0it [00:00, ?it/s]\rvalid: 0it [00:00, ?it/s, val_loss=0.2]" + erasedBar + "\n"

// A bar that tqdm took away was at its end, however little of it was drawn.
func TestBars_TakenAway(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"last":              {"val_loss", theLast, erasedBars, 0.2},
		"mean":              {"val_loss", theMean, erasedBars, 0.55},
		"of a generator":    {"val_loss", theLast, erasedCounts, 0.2},
		"mean of generator": {"val_loss", theMean, erasedCounts, 0.55},
		"for a moment":      {"loss", theBest, "\rTrain:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s, loss=0.1]" + erasedBar + "\rTrain:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s, loss=0.1]\rTrain: 100%|██████████| 4/4 [00:00<00:00,  6.65it/s, loss=0.5]\n", 0.5},
		"for a moment, at 0": {"val_acc", theBest, "\r  0%|          | 0/3 [00:00<?, ?it/s]" + erasedBar + "\r  0%|          | 0/3 [00:03<?, ?it/s]" +
			"\r 33%|███▎      | 1/3 [00:05<00:10,  5.00s/it, val_acc=0.95]\r 67%|██████▋   | 2/3 [00:10<00:05,  5.00s/it, val_acc=0.9]" +
			"\r100%|██████████| 3/3 [00:15<00:00,  5.00s/it, val_acc=0.85]\n", 0.95},
	})
}

// What is printed while a bar is drawn ends its line, or takes the bar away for a moment: it is
// not at its end.
func TestBars_SomethingIsPrintedBetween(t *testing.T) {
	t.Parallel()

	const (
		before = "\rEpoch 1:   0%|          | 0/4 [00:00<?, ?it/s]\rEpoch 1:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s, acc=1]"
		again  = "\rEpoch 1:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s, acc=1]\r"
		end    = "Epoch 1: 100%|██████████| 4/4 [00:00<00:00,  6.65it/s, acc=0.5]\n"
	)

	for name, between := range map[string]string{
		"nothing":                    "\r",
		"a warning":                  "/app/train.py:12: UserWarning: abc\n  warnings.warn(\n\r",
		"a warning of no source":     "/app/train.py:12: UserWarning: abc\n\r",
		"a logger":                   "WARNING:root:skipping a bad image\n\r",
		"a logger, with a counter":   "WARNING:root:skipping image 3/90\n\r",
		"a logger, with a list":      "WARNING:root:skipping images [3, 4]\n\r",
		"an indented print":          "  step 1: lr = 0.1\n\r",
		"tqdm.write":                 erasedBar + "Saved checkpoint\n" + again,
		"tqdm.write, a counter":      erasedBar + "Saved checkpoint 1/4\n" + again,
		"tqdm.write, of the epoch":   erasedBar + "Epoch 1 saved\n" + again,
		"tqdm.write, before a step":  erasedBar + "Saved checkpoint\n\rEpoch 1:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s]\r",
		"tqdm.write, of a next word": erasedBar + "Next epoch\n" + again,
		"tqdm.write, twice":          erasedBar + "Saved\n" + again + erasedBar + "Saved\n" + again,
	} {
		for _, stream := range []string{berth.Stdout, berth.Stderr} {
			t.Run(name+", "+stream, func(t *testing.T) {
				t.Parallel()

				value := ranked(t, berth.Objective{Metric: "acc", Strategy: theBest, Goal: berth.GoalMaximize}, stream, before+between+end)
				require.NotNil(t, value)
				require.InDelta(t, 0.5, *value, 0)
			})
		}
	}
}

// A bar that is not drawn again behind a message was at its end.
func TestBars_ABarIsTakenAwayBeforeAMessage(t *testing.T) {
	t.Parallel()

	epoch := func(e int, loss string) string {
		return fmt.Sprintf("\rEpoch %d:   0%%|          | 0/47 [00:00<?, ?it/s]\rEpoch %d:  68%%|██████▊   | 32/47 [00:00<00:00, 316.49it/s, loss=0.9]"+
			"\rEpoch %d:  68%%|██████▊   | 32/47 [00:00<00:00, 316.49it/s, loss=%s]", e, e, e, loss) + erasedBar
	}

	requireRanked(t, map[string]rankedCase{
		"in each epoch": {"loss", theLast, epoch(1, "0.5") + "val_acc=0.7\n" + epoch(2, "0.3") + "val_acc=0.8\n", 0.3},
		"at the end":    {"loss", theLast, epoch(1, "0.5") + epoch(2, "0.3") + "done\n", 0.3},
		"no message":    {"loss", theLast, epoch(1, "0.5") + "x\n" + epoch(2, "0.3"), 0.3},
		"of an epoch":   {"loss", theMean, epoch(1, "0.5") + "INFO:root:Epoch 1: val_acc=0.7\n" + epoch(2, "0.3") + "INFO:root:Epoch 2: val_acc=0.8\n", 0.4},
		"fast":          {"loss", theLast, epoch(1, "0.5") + "val_acc=0.7\n\rEpoch 2:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.3]" + erasedBar + "val_acc=0.8\n", 0.3},
		"no epoch":      {"loss", theMean, strings.ReplaceAll(epoch(1, "0.5")+"acc=0.7\n"+epoch(1, "0.3")+"acc=0.8\n", "Epoch 1", "train"), 0.4},
	})
}

// What a script says of an epoch itself counts more than the last drawing of its bar before that, which keeps
// the place where it was.
func TestBars_AMessageWithTheMetricOfABarThatIsGone(t *testing.T) {
	t.Parallel()

	bar := func(about string, losses ...string) (drawn string) {
		for i, loss := range losses {
			drawn += fmt.Sprintf("\r%s %d%%|██▌       | %d/4 [00:00<00:00, 15.52it/s, loss=%s]", about, 25*i, i, loss)
		}

		return drawn + erasedBar
	}

	requireRanked(t, map[string]rankedCase{
		"the same":      {"loss", theLast, bar("Epoch 1:", "1", "0.6") + "Epoch 1: loss=0.8\n" + bar("Epoch 2:", "0.5", "0.3") + "Epoch 2: loss=0.45\n", 0.45},
		"no epoch":      {"loss", theLast, bar("", "1", "0.6") + "loss=0.8\n" + bar("", "0.5", "0.3") + "loss=0.45\n", 0.45},
		"another":       {"loss", theLast, bar("", "1", "0.6") + "avg loss: 0.8\n" + bar("", "0.5", "0.3") + "Test loss: 0.45\n", 0.3},
		"under a title": {"val_loss", theLast, bar("Epoch 1:", "1", "0.6") + "Validation:\nloss: 0.8\n" + bar("Epoch 2:", "0.5", "0.3") + "Validation:\nloss: 0.45\n", 0.45},
	})

	o := berth.Objective{Metric: "loss", Strategy: theLast, Goal: berth.GoalMinimize}
	_, rest := printedAs(t, &o, berth.Stdout, bar("Epoch 1:", "1", "0.6")+"acc=0.8\n"+bar("Epoch 2:", "0.5", "0.3")+"acc=0.9\n")
	require.Len(t, rest.points, 4)

	for _, point := range rest.points {
		require.Equal(t, 2026, point.At.Year(), "%+v", point)
	}
}

func TestBars_APostfixBehindTheBracketIsOfItsBar(t *testing.T) {
	t.Parallel()

	train := "\rtrain: 100%|██████████| 30/30 [00:00<00:00], loss=0.1\n"
	val := "\rval:  63%|██████▎   | 19/30 [00:00<00:00], loss=0.5\rval:  67%|██████▋   | 20/30 [00:00<00:00], loss=0.4\n"
	requireRanked(t, map[string]rankedCase{"val": {"val_loss", theLast, train + val + train, 0.4}})
}

// What is printed behind the drawing of a bar counts, and an epoch counts once.
func TestBars_MetricsArePrintedBehind(t *testing.T) {
	t.Parallel()

	const middle = "\rEpoch 1:  25%|██▌       | 1/4 [00:00<00:00,  6.65it/s, acc=1]"

	nothing := func(step int, shown string) string {
		return fmt.Sprintf("\r %d%%|██▌       | %d/3 [00:00<00:00,  6.65it/s%s]", 100*step/3, step, shown)
	}

	requireRanked(t, map[string]rankedCase{
		"in the middle":     {"val_acc", theBest, middle + "INFO:root:val_acc=0.7\n" + middle + "\n", 0.7},
		"of validation":     {"val_acc", theBest, "\rvalidation: 1it [00:00,  6.65it/s, val_acc=1]INFO:root:val_acc=0.7\n", 0.7},
		"brackets in a bar": {"acc", theBest, "\rEpoch 1: 1it [00:00,  6.65it/s, ids=[1, 2], acc=0.5]\n", 0.5},
		"the end":           {"val_acc", theBest, "\rvalidation: 100%|██████████| 4/4 [00:00<00:00,  6.65it/s] acc: 0.7\n", 0.7},
		"it says nothing":   {"val_acc", theBest, nothing(1, ", loss=0.1, val_acc=0.9") + "WARNING:root:x\n" + nothing(1, ", loss=0.1, val_acc=0.9") + nothing(2, ", loss=0.1, val_acc=0.8") + nothing(3, ", loss=0.1, val_acc=0.7") + "\n", 0.9},
		"each once":         {"val_acc", theMean, nothing(1, ", val_acc=0.9") + "WARNING:root:x\n" + nothing(1, ", val_acc=0.9") + nothing(2, ", val_acc=0.8") + "WARNING:root:x\n" + nothing(2, ", val_acc=0.8") + nothing(3, ", val_acc=0.7") + "\n", 0.8},
		"and of training":   {"loss", theBest, nothing(1, ", loss=0.1, val_acc=0.9") + "WARNING:root:x\n" + nothing(3, ", loss=0.3, val_acc=0.7") + "\n", 0.3},
		"stopped":           {"acc", theBest, middle + "\n", 1},
		"epochs":            {"acc", theMean, "\rEpochs:  50%|██▌       | 1/2 [00:00<00:00,  6.65it/s, acc=1]\rEpochs:  50%|██▌       | 1/2 [00:00<00:00,  6.65it/s, acc=1]WARNING:root:x\n\rEpochs: 100%|██████████| 2/2 [00:00<00:00,  6.65it/s, acc=0.5]\n", 0.75},
		"in an epoch's":     {"val_acc", theLast, "\rEpochs:  50%|██▌       | 1/2 [00:00<00:00,  6.65it/s, acc=1]\rEpochs:  50%|██▌       | 1/2 [00:00<00:00,  6.65it/s, acc=1]INFO:root:val_acc=0.7\n", 0.7},
	})
}

// A bar counts at its end, also one without a total, of scaled counts, or with other counters.
func TestBars_CountersOfOtherForms(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"tqdm of a generator":     {"val_acc", theBest, "\rval: 0it [00:00, ?it/s]\rval: 1it [00:00, 9.1it/s, val_acc=1.0]\rval: 2it [00:00, 9.1it/s, val_acc=0.75]\rval: 3it [00:00, 9.1it/s, val_acc=0.8]\n", 0.8},
		"an epoch of a generator": {"loss", theBest, "\rEpoch 1: 0it [00:00, ?it/s]\rEpoch 1: 1it [00:00, 9.1it/s, loss=0.1]\rEpoch 1: 2it [00:00, 9.1it/s, loss=0.5]\rEpoch 1: 3it [00:00, 9.1it/s, loss=0.4]\n", 0.4},
		"unit_scale=True":         {"loss", theBest, "\r 33%|███▎      | 1.00k/3.00k [00:00<00:00, 9.1kit/s, loss=0.1]\r 67%|██████▋   | 2.00k/3.00k [00:00<00:00, 9.1kit/s, loss=0.5]\r100%|██████████| 3.00k/3.00k [00:00<00:00, 9.1kit/s, loss=0.4]\n", 0.4},
		"pytorch-cifar's bar": {"acc", theBest, " [>....................]  Step: 1ms | Tot: 1ms | Loss: 0.1 | Acc: 100.000% (100/100) 1/3 \r [=>...................]  Step: 1ms | Tot: 2ms | Loss: 0.4 | Acc: 80.000% (160/200) 2/3 \r" +
			" [=====================>]  Step: 1ms | Tot: 2ms | Loss: 0.4 | Acc: 85.000% (255/300) 3/3 \n", 85},
	})
}

// The first bar of a validation has no total.
func TestBars_LightningsOldValue(t *testing.T) {
	t.Parallel()

	o := berth.Objective{Metric: "val_loss", Strategy: theMean, Goal: berth.GoalMinimize}
	out, rest := printedAs(t, &o, berth.Stdout, lightningBars)
	value, _ := out.metrics.objective(o)
	require.NotNil(t, value)

	var curve []float64

	for _, p := range rest.points {
		if p.Name == "val_loss" {
			curve = append(curve, p.Value)
		}
	}

	require.Equal(t, []float64{0.9, 0.5, 0.4}, curve, "one for each epoch")
	require.InDelta(t, 0.6, *value, 1e-9)
}

// Each epoch counts, however seldom the bar draws its counter.
func TestBars_FastEpochs(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"best": {"val_acc", theBest, fastEpochs, 0.9},
		"mean": {"val_acc", theMean, fastEpochs, 0.725},
	})
}

// An epoch counts once, though its bar is drawn again behind the bar in it.
func TestBars_ABarInABarOfEpochs(t *testing.T) {
	t.Parallel()

	o := berth.Objective{Metric: "val_acc", Goal: berth.GoalMaximize}
	_, rest := printedAs(t, &o, berth.Stdout, nestedEpochs)

	var curve []float64

	for _, p := range rest.points {
		if p.Name == "val_acc" {
			curve = append(curve, p.Value)
		}
	}

	require.Equal(t, []float64{0.9, 0.5, 0.7}, curve)
}

// Wherever Docker cuts a line, and a worker is killed there, the epochs are the same.
func TestBars_EpochsInPieces(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		metric, text string
		mean         float64
	}{{"val_acc", nestedEpochs, 0.7}, {"val_loss", lightningBars, 0.6}, {"val_loss", erasedBars, 0.55}} {
		objective := berth.Objective{Metric: c.metric, Strategy: theMean, Goal: berth.GoalMaximize}

		for cut := 0; cut < len(c.text); cut += max(len(c.text)/80, 7) {
			first, adopt := autoOutput(t, objective)
			begun := 0

			for _, text := range strings.SplitAfter(c.text[:cut], "\n") {
				begun++
				first.take(chunk(berth.Stderr, text, begun))
			}

			require.NoError(t, first.write(t.Context()))
			first.keep()

			next, at := adopt(), 0
			for _, text := range append(strings.SplitAfter(c.text[:cut], "\n"), strings.SplitAfter(c.text[cut:], "\n")...) {
				at++
				next.take(chunk(berth.Stderr, text, at))
			}

			next.finish()

			value, _ := next.metrics.objective(objective)
			require.NotNil(t, value)
			require.InDelta(t, c.mean, *value, 1e-9, "%s, cut at %d", c.metric, cut)
		}
	}
}
