package runtrial

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// lightning draws its bar of an epoch twice at its end: before it validates, with the old
// val_loss, and behind it.
const lightning = "\rEpoch 0: 100%|██| 9/9 [00:01<00:00, 9.1it/s, v_num=0, train_loss=0.9]\rValidation:  33%|█ | 1/3 [00:00<00:00, 90.1it/s]" +
	"\rValidation: 100%|██| 3/3 [00:00<00:00, 90.1it/s]\rEpoch 0: 100%|██| 9/9 [00:01<00:00, 9.1it/s, v_num=0, train_loss=0.9, val_loss=0.4]" +
	"\rEpoch 1:  11%|█ | 1/9 [00:01<00:00, 9.1it/s, v_num=0, train_loss=0.8, val_loss=0.4]" +
	"\rEpoch 1: 100%|██| 9/9 [00:01<00:00, 9.1it/s, v_num=0, train_loss=0.7, val_loss=0.4]\rValidation: 100%|██| 3/3 [00:00<00:00, 90.1it/s]" +
	"\rEpoch 1: 100%|██| 9/9 [00:01<00:00, 9.1it/s, v_num=0, train_loss=0.7, val_loss=0.2]"

// A bar counts at its end, however fast it is, unless its steps are epochs.
func TestBars_WhatCounts(t *testing.T) {
	t.Parallel()

	batches := func(rate string) string {
		return "\rEpoch 1/1:  33%|█    | 1/3 [00:01<00:01,  " + rate + ", loss=0.1]\rEpoch 1/1:  67%|███  | 2/3 [00:02<00:01,  " + rate +
			", loss=0.2]\rEpoch 1/1: 100%|█████| 3/3 [00:03<00:00,  " + rate + ", loss=0.3]\n"
	}
	epochs := func(description, rate, name string) string {
		return "\r" + description + "  33%|█    | 1/3 [00:00<00:01,  " + rate + ", " + name + "=0.91]\r" + description + "  67%|███  | 2/3 [00:01<00:00,  " + rate +
			", " + name + "=0.95]\r" + description + " 100%|█████| 3/3 [00:01<00:00,  " + rate + ", " + name + "=0.85]\n"
	}

	requireRanked(t, map[string]rankedCase{
		"fast":       {"loss", theBest, batches("1.50it/s"), 0.3},
		"slow":       {"loss", theBest, batches("1.50s/it"), 0.3},
		"fast, mean": {"loss", theMean, batches("1.50it/s"), 0.3},
		"slow, mean": {"loss", theMean, batches("1.50s/it"), 0.3},

		"epochs by their unit":        {"acc", theBest, epochs("", "2.00epoch/s", "acc"), 0.95},
		"slow epochs by their unit":   {"acc", theBest, epochs("", "2.00s/epoch", "acc"), 0.95},
		"epochs by their description": {"acc", theBest, epochs("Epochs:", "2.00it/s", "acc"), 0.95},
		"fast, and it says nothing":   {"val_acc", theBest, epochs("", "2.00it/s", "val_acc"), 0.95},
		"slow, and it says nothing":   {"val_acc", theBest, epochs("", "2.00s/it", "val_acc"), 0.95},
		"nothing but training":        {"val_acc", theBest, epochs("Training:", "2.00it/s", "val_acc"), 0.95},
		"slow, of training":           {"acc", theBest, epochs("", "2.00s/it", "acc"), 0.85},
		"over data of validation":     {"val_acc", theBest, epochs("Validation:", "2.00s/it", "val_acc"), 0.85},
		"one of several":              {"val_acc", theBest, "\r100%|█████| 3/3 [00:01<00:00, 2.00s/it, loss=0.5]\n" + epochs("", "2.00s/it", "val_acc"), 0.85},

		"Lightning":                     {"val_loss", theMean, lightning + "\n", 0.3},
		"Lightning's training":          {"train_loss", theMean, lightning + "\n", 0.8},
		"another epoch behind":          {"val_loss", theMean, lightning + "\rEpoch 2:  11%|█ | 1/9 [00:01<00:00, 9.1it/s, v_num=0, val_loss=0.2]\rEpoch 2: 100%|██| 9/9 [00:01<00:00, 9.1it/s, v_num=0, val_loss=0.6]\n", 0.4},
		"the same value again":          {"val_loss", theMean, lightning + "\rEpoch 2: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.2]\rValidation: 100%|██| 3/3 [00:00<00:00, 90.1it/s]\rEpoch 2: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.2]\n", 0.8 / 3},
		"Lightning's bars on two lines": {"val_loss", theMean, strings.ReplaceAll(strings.ReplaceAll(lightning, "\rValidation", "\n\rValidation"), "90.1it/s]", "90.1it/s]\x1b[A"), 0.3},
		"a line behind":                 {"val_loss", theLast, "\rEpoch 1: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.4]\nval_loss=0.5\n", 0.5},
		"the end of each epoch":         {"val_loss", theMean, "\rEpoch 1: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.4]\n\rEpoch 2: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.2]\n", 0.3},
		"a bar that is not repeated":    {"val_loss", theMean, "\rEpoch 1: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.4]\rother: 100%|██| 3/3 [00:00<00:00, 90.1it/s]\rEpoch 2: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.2]\rother: 100%|██| 3/3 [00:00<00:00, 90.1it/s]\n", 0.3},
	})
}

// Docker passes on a long line in pieces, and a worker may be killed between two of them:
// what a bar shows is the same.
func TestBars_InPieces(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"Lightning": lightning, "Lightning on two lines": strings.ReplaceAll(lightning, "\rValidation", "\n\rValidation"), "epochs": "\r 33%|█| 1/3 [00:01<00:01, 2.0it/s, val_loss=0.2]\r 67%|█| 2/3 [00:01<00:01, 2.0it/s, val_loss=0.4]\r100%|█| 3/3 [00:01<00:01, 2.0it/s, val_loss=0.3]\r",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objective := berth.Objective{Metric: "val_loss", Strategy: berth.StrategyMean, Goal: berth.GoalMinimize}

			for cut := 0; cut < len(text); cut += 7 {
				first, adopt := autoOutput(t, objective)
				first.take(chunk(berth.Stderr, text[:cut], 1))
				require.NoError(t, first.write(t.Context()))
				first.keep()

				next := adopt()
				for i, text := range []string{text[:cut], text[cut:], "\n", "\r 10%|█| 1/9 [00:01<00:01, 2.0it/s, val_loss=0.9]\r100%|█| 9/9 [00:01<00:01, 2.0it/s, val_loss=0.3]\n"} {
					next.take(chunk(berth.Stderr, text, i+1))
				}

				next.finish()

				value, _ := next.metrics.objective(objective)
				require.NotNil(t, value)
				require.InDelta(t, 0.3, *value, 1e-9, "cut at %d", cut)
			}
		})
	}
}

// The end of an epoch's bar waits for one drawing more on its own stream only.
func TestBars_ALineOnTheOtherStream(t *testing.T) {
	t.Parallel()

	objective := berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize}
	o, _ := autoOutput(t, objective)
	o.take(chunk(berth.Stderr, "\rEpoch 1: 100%|██| 9/9 [00:01<00:00, 9.1it/s, val_loss=0.4]\n", 1))
	o.take(chunk(berth.Stdout, "val_loss=0.5\n", 2))
	o.finish()

	value, _ := o.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.5, *value, 0)
}
