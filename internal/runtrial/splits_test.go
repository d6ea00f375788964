package runtrial

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A split before a counter is that of the names behind it.
func TestSplits_BeforeACounter(t *testing.T) {
	t.Parallel()

	const (
		brackets = "Train: [10/10] loss: 0.1 acc: 0.99\nVal: [3/3] loss: 0.4 acc: 0.85\n"
		epochs   = "Train: 3 loss: 0.1 acc: 0.99\nVal: 3 loss: 0.4 acc: 0.85\n"
		percent  = "Training: 100%, loss: 0.1, acc: 0.99\nValidation: 100%, loss: 0.4, acc: 0.85\n"
		slash    = "Training: 10/10, loss: 0.1, acc: 0.99\nValidation: 3/3, loss: 0.4, acc: 0.85\n"
		timm     = "Train: 0 [ 499/500 (100%)]  Loss: 0.10 (0.20)  LR: 1.0e-05  Data: 0.01 (0.02)\nTest: [  48/48]  Time: 0.1 (0.2)  Loss: 0.40 (0.50)\n"
	)

	requireRanked(t, map[string]rankedCase{
		"val_acc":                 {"val_acc", theLast, brackets, 0.85},
		"never train's":           {"acc", theBest, brackets, 0.85},
		"never train's loss":      {"loss", theBest, brackets, 0.4},
		"an epoch, val_acc":       {"val_acc", theLast, epochs, 0.85},
		"an epoch, never train's": {"acc", theBest, epochs, 0.85},
		"percent, val_acc":        {"val_acc", theLast, percent, 0.85},
		"counter, val_acc":        {"val_acc", theLast, slash, 0.85},
		"timm":                    {"loss", theBest, timm, 0.5},
		"timm, test_loss":         {"test_loss", theLast, timm, 0.5},
	})
}

// What is said of the split beside it, with a colon, does not make it doubtful: the mean would be
// more like the objective.
func TestSplits_WithANoun(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"results": {"test_accuracy", theLast, "Mean test accuracy: 0.7\nTest set results: cost= 1.0 accuracy= 0.8\n", 0.8},
		"a dict":  {"test_accuracy", theLast, "Mean test accuracy: 0.7\ntest_results: {'accuracy': 0.8}\n", 0.8},
	})
}

// A split in parentheses behind a value is that value's.
func TestSplits_BehindTheValue(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"acc":       {"acc", theLast, "Acc: 0.99 (train), Acc: 0.85 (val)\n", 0.85},
		"train_acc": {"train_acc", theLast, "loss: 0.1 acc: 0.99 (train) | loss: 0.4 acc: 0.85 (val)\n", 0.99},
		"one name":  {"rmse", theLast, "RMSE: 0.1 (train), 0.4 (val)\n", none},
	})
}

// Behind two splits stand two values, however they are parted: none is the name's.
func TestSplits_Two(t *testing.T) {
	t.Parallel()

	cases := map[string]rankedCase{
		"each its own":   {"acc", theLast, "train acc: 0.9, val acc: 0.8\n", 0.8},
		"of train":       {"train_acc", theLast, "train acc: 0.9, val acc: 0.8\n", 0.9},
		"a sentence":     {"acc", theLast, "Done with train, val acc: 0.85\n", 0.85},
		"a logger":       {"acc", theLast, "2026-01-02 | INFO | train | val acc: 0.85 | 12s\n", 0.85},
		"a logger's own": {"val_acc", theLast, "INFO:train:val acc: 0.85 - 0.5\n", 0.85},
		"no more values": {"lr", theLast, "train/val acc: 0.99/0.85, lr: 0.01\n", 0.01},
		"two metrics":    {"val_loss", theLast, "Epoch 3 loss, acc: 0.35, 0.91 | val_loss: 0.31 | 12.5 s\n", 0.31},
	}

	for _, line := range []string{
		"Train/Val Acc: 99.10%/85.20%", "Train/Val Acc: 99.10% / 85.20%", "Train/Val Acc: 80/90", "Train/Val Acc: 0.99 - 0.85", "train | val acc: 0.99 | 0.85",
		"Train and val acc: 0.99 and 0.85", "train, val acc: 0.99; 0.85", "train & val acc: 99% & 85%", "train/val/test acc: 0.99, 0.85, 0.84",
		"Train/Val loss: 0.1/0.4, acc: 99.10%/85.20%", "train and val loss: 0.1 and 0.4, acc: 0.99 and 0.85",
	} {
		for _, objective := range []string{"acc", "val_acc"} {
			cases[objective+" of "+line] = rankedCase{objective, theLast, "Epoch 1 " + line + "\n", none}
		}
	}

	requireRanked(t, cases)
}

// A record says by several fields of which data it is, a dict by the name before it.
func TestSplits_OfRecords(t *testing.T) {
	t.Parallel()

	cases := map[string]rankedCase{
		"a name before a dict": {"acc", theLast, "val_metrics: {'acc': 0.85}\ntrain_metrics: {'acc': 0.99}\n", 0.85},
		"val_acc by it":        {"val_acc", theLast, "train_metrics: {'acc': 0.99}\nval_metrics: {'acc': 0.85}\n", 0.85},
		"f-string":             {"acc", theBest, "train_metrics={'acc': 0.99} val_metrics={'acc': 0.85}\n", 0.85},
	}
	for _, field := range []string{"stage", "type", "set", "dataset", "event", "partition"} {
		cases["field "+field] = rankedCase{"acc", theLast, `{"` + field + `": "val", "epoch": 1, "acc": 0.85}` + "\n" + `{"` + field + `": "train", "epoch": 1, "acc": 0.99}` + "\n", 0.85}
	}

	requireRanked(t, cases)
}

// A record of a logger says so in its message, or in more than a word.
func TestSplits_OfRecordsInMoreThanAWord(t *testing.T) {
	t.Parallel()

	cases := map[string]rankedCase{
		"nothing else":     {"acc", theLast, `{"message": "training finished", "acc": 0.85}` + "\n", 0.85},
		"one says nothing": {"acc", theBest, `{"message": "epoch 0", "acc": 0.85}` + "\n" + `{"message": "train epoch 0", "acc": 0.99}` + "\n", 0.85},
		"the other field":  {"acc", theBest, `{"message": "train epoch 0", "split": "val", "acc": 0.85}` + "\n" + `{"message": "epoch 0", "split": "train", "acc": 0.99}` + "\n", 0.85},
		"its own name":     {"val_acc", theLast, `{"message": "train epoch 0", "acc": 0.99, "val_acc": 0.85}` + "\n", 0.85},
		"a long text":      {"acc", theLast, `{"acc": 0.5}` + "\n" + `{"message": "` + strings.Repeat("this is no label, ", 5) + `it tells of the train set", "acc": 0.85}` + "\n", 0.85},
		"a path":           {"acc", theLast, `{"acc": 0.5}` + "\n" + `{"dataset": "data/train.csv", "acc": 0.85}` + "\n", 0.85},
	}

	for name, record := range map[string]string{
		"message": `{"message": "%s epoch 0", "acc": %g}`, "msg": `{"msg": "%s", "acc": %g}`, "event": `{"event": "%s_epoch", "acc": %g}`, "phase": `{"phase": "%s_epoch", "acc": %g}`,
		"split": `{"split": "%s_set", "acc": %g}`, "message of one word": `{"message": "%s", "acc": %g}`, "capitals": `{"message": "Epoch 1/3 [%s]", "acc": %g}`,
	} {
		for _, val := range []string{"val", "Validation", "test"} {
			text := fmt.Sprintf(record+"\n"+record+"\n", val, 0.85, "train", 0.99)
			cases[name+" of "+val] = rankedCase{"acc", theBest, text, 0.85}
		}
	}

	requireRanked(t, cases)
}

// A record over several lines may stand behind words, as json.dumps with indent and pprint give
// it to a print or a logger. What only begins like one is read line by line.
func TestSplits_OfRecordsBehindWords(t *testing.T) {
	t.Parallel()

	const (
		record = "{\n  \"test\": {\n    \"acc\": 0.85\n  },\n  \"train\": {\n    \"acc\": 0.99\n  }\n}\n"
		pprint = "{'train': {'acc': 0.99, 'loss': 0.01},\n 'val': {'acc': 0.85, 'loss': 0.4}}\n"
	)

	requireRanked(t, map[string]rankedCase{
		"nothing":      {"acc", theLast, record, 0.85},
		"a colon":      {"acc", theLast, "Results: " + record, 0.85},
		"a logger":     {"acc", theLast, "INFO:root:" + record, 0.85},
		"loguru":       {"acc", theLast, "2026-01-02 03:04:05.678 | INFO     | __main__:main:12 - " + record, 0.85},
		"a sign":       {"acc", theBest, "results=" + pprint, 0.85},
		"a space":      {"acc", theBest, "results " + pprint, 0.85},
		"a split":      {"acc", theBest, "train: {\n  \"acc\": 0.99\n}\nval: {\n  \"acc\": 0.85\n}\n", 0.85},
		"the best":     {"acc", theLast, "acc: 0.85\nBest: {\n  \"acc\": 0.99\n}\n", 0.85},
		"cut off":      {"acc", theLast, "Results: {\n  \"acc\": 0.85,\n", 0.85},
		"no record":    {"acc", theLast, "if (x) {\n  y = 1;\nacc: 0.85\n", 0.85},
		"source":       {"acc", theLast, "acc: 0.85\n  File \"a.py\", line 3, in f\n    results = {\n        'acc': 0.99\n    }\n", 0.85},
		"no end":       {"acc", theLast, "Config: {\n  \"lr\": 0.1,\nepoch 1 acc: 0.5\nepoch 2 acc: 0.85\n", 0.85},
		"another next": {"acc", theLast, "Config: {\n  \"lr\": 0.1,\n{\"acc\": 0.85}\n", 0.85},
		"folds":        {"acc", theMean, "Results: {\n  \"fold_0\": {\n    \"acc\": 0.75\n  },\n  \"fold_1\": {\n    \"acc\": 0.85\n  }\n}\n", 0.8},
		"a noun":       {"acc", theLast, "Final: {\n  \"results\": {\n    \"acc\": 0.85\n  }\n}\n", 0.85},
		"deeper":       {"acc", theLast, "Results: {\n  \"test\": {\n    \"metrics\": {\n      \"acc\": 0.85\n    }\n  }\n}\n", 0.85},
		"a list":       {"val_loss", theLast, "History: {\n  \"h\": [\n    {\n      \"val_loss\": 0.5\n    },\n    {\n      \"val_loss\": 0.3\n    }\n  ]\n}\n", 0.3},
		"own type":     {"acc", theLast, "Results: {\n  \"type\": \"resnet\",\n  \"metrics\": {\n    \"acc\": 0.85\n  }\n}\n", 0.85},
		"a list in it": {"val_loss", theLast, "Results: {\n  \"test\": {\n    \"h\": [\n      {\n        \"val_loss\": 0.3\n      }\n    ]\n  }\n}\n", 0.3},
		"metrics":      {"acc", theLast, "Results: {\n  \"epoch\": 1,\n  \"metrics\": {\n    \"acc\": 0.85\n  }\n}\n", 0.85},
		"a report":     {"acc", theLast, "Results: {\n  \"val_metrics\": {\n    \"acc\": 0.85\n  },\n  \"train_metrics\": {\n    \"acc\": 0.99\n  }\n}\n", 0.85},
		"a model":      {"acc", theLast, "Results: {\n  \"cnn_metrics\": {\n    \"acc\": 0.85\n  }\n}\n", 0.85},
		"a quality":    {"acc", theLast, "acc: 0.85\nResults: {\n  \"best\": {\n    \"acc\": 0.99\n  }\n}\n", 0.85},
		"numbers":      {"acc", theLast, "Results: {\n  \"train\": {\n    \"acc\": 0.99,\n    \"sizes\": [\n      1,\n      2\n    ]\n  },\n  \"acc\": 0.85\n}\n", 0.85},
	})
}

// A record that tells of the objective is one, whatever else is in it: its lines by themselves
// have lost their split, their depth and the word Best.
func TestSplits_OfRecordsWithMoreInThem(t *testing.T) {
	t.Parallel()

	const (
		config   = "Results: {\n  \"config\": {\n    \"lr\": 0.1\n  },\n  \"test\": {\n    \"acc\": 0.85\n  },\n  \"train\": {\n    \"acc\": 0.99\n  }\n}\n"
		perClass = "Results: {\n  \"acc\": 0.85,\n  \"per_class\": {\n    \"cat\": {\n      \"acc\": 0.8\n    },\n    \"dog\": {\n      \"acc\": 0.1\n    }\n  }\n}\n"
		history  = "Results: {\n  \"acc\": 0.85,\n  \"history\": [\n    {\n      \"acc\": 0.5\n    },\n    {\n      \"acc\": 0.6\n    }\n  ]\n}\n"
		losses   = "val_loss: 0.21\nval_loss: 0.3\n"
		parts    = ": {\n  \"loss\": %s,\n  \"parts\": {\n    \"kl\": 0.1\n  }\n}\n"
	)

	requireRanked(t, map[string]rankedCase{
		"settings":         {"acc", theLast, config, 0.85},
		"classes":          {"acc", theLast, perClass, 0.85},
		"a history":        {"acc", theLast, history, 0.85},
		"the best":         {"val_loss", theLast, losses + "Best: {\n  \"epoch\": 1,\n  \"val_loss\": 0.21,\n  \"params\": {\n    \"lr\": 0.1\n  }\n}\n", 0.3},
		"the best, pprint": {"val_loss", theLast, losses + "Best trial: {'config': {'lr': 0.1, 'units': 32},\n 'epoch': 1,\n 'val_loss': 0.21}\n", 0.3},
		"a model's best":   {"accuracy", theLast, "Best results: {\n  \"model_a\": {\n    \"test\": {\n      \"accuracy\": 0.9\n    }\n  }\n}\n", 0.9},
		"the best, deeper": {"val_loss", theLast, losses + "Best model: {\n  \"metrics\": {\n    \"test\": {\n      \"val_loss\": 0.21\n    }\n  }\n}\n", 0.3},
		"of validation":    {"val_loss", theLast, "val" + fmt.Sprintf(parts, "0.3"), 0.3},
		"of training":      {"loss", theLast, "train" + fmt.Sprintf(parts, "0.1"), none},
		"no value":         {"loss", theLast, "loss: 0.3\nval" + fmt.Sprintf(parts, "null"), 0.3},
	})
}

// A line of nothing but a split is the heading of those behind it.
func TestSplits_Headings(t *testing.T) {
	t.Parallel()

	const (
		yaml    = "Training:\n  loss: 0.1\n  acc: 0.99\nValidation:\n  loss: 0.4\n  acc: 0.85\n"
		heading = "----- Validation -----\nacc: 0.85\n----- Training -----\nacc: 0.99\n"
	)

	requireRanked(t, map[string]rankedCase{
		"val_acc": {"val_acc", theLast, yaml, 0.85},
		"best":    {"acc", theBest, yaml, 0.85},
		"heading": {"acc", theLast, heading, 0.85},
		"nouns":   {"acc", theLast, "Test set results:\nacc: 0.85\n\n=== Train ===\nacc: 0.99\n", 0.85},
		"is over": {"acc", theLast, "Training:\n  acc: 0.99\nThat was it\nacc: 0.85\n", 0.85},
		"after":   {"acc", theLast, "After training: acc: 0.85\n", 0.85},
		"is none": {"acc", theLast, "acc: 0.5\nTraining...\nacc: 0.85\n", 0.85},
	})

	objective := berth.Objective{Metric: "acc", Goal: berth.GoalMaximize} // a worker is killed below the heading
	killed, adopt := autoOutput(t, objective)
	killed.take(chunk(berth.Stdout, "Validation:\n", 1))
	killed.take(chunk(berth.Stdout, "acc: 0.85\nTraining:\n", 2))
	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	next := adopt()
	next.take(chunk(berth.Stdout, "Validation:\n", 1))
	next.take(chunk(berth.Stdout, "acc: 0.85\nTraining:\n", 2))
	next.take(chunk(berth.Stdout, "acc: 0.99\n", 3))
	next.finish()

	value, _ := next.metrics.objective(objective)
	require.NotNil(t, value)
	require.InDelta(t, 0.85, *value, 0)
}
