package metrics_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A loss beside its terms is none of them, whatever words they have.
func TestNames_TermsOfALoss(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"PPO":             {"loss", theLast, "loss: 0.6, policy loss: 0.1, value loss: 0.5\n", 0.6},
		"PPO in capitals": {"loss", theLast, "Loss: 0.6 | Policy loss: 0.1 | Value loss: 0.5\n", 0.6},
		"PPO's best":      {"loss", theBest, "loss: 0.6, policy loss: 0.1, value loss: 0.5\n", 0.6},
		"PINN":            {"loss", theLast, "Epoch 100 loss: 0.5, physics loss: 0.3, data loss: 0.2\n", 0.5},
		"DETR's sets":     {"loss", theLast, "loss: 0.5, box loss: 0.3, set loss: 0.2\n", 0.5},
		"world model":     {"loss", theLast, "loss: 0.5, actor loss: 0.3, model loss: 0.2\n", 0.5},
	})
}

// An article, a unit or the name of a logger may be a part of another metric's name.
func TestNames_WordsThatLookLikeUnits(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"MSE, then RMSE":        {"mean_squared_error", theLast, "Mean Squared Error: 0.09\nRoot Mean Squared Error: 0.30\n", 0.09},
		"RMSE by its full name": {"root_mean_squared_error", theLast, "Mean Squared Error: 0.09\nRoot Mean Squared Error: 0.30\n", 0.30},
		"multi-similarity":      {"loss", theLast, "loss: 0.9, CE loss: 0.6, MS loss: 0.3\n", 0.9},
		"CycleGAN":              {"loss", theLast, "loss: 0.9, A loss: 0.3, B loss: 0.6\n", 0.9},
		"source and target":     {"acc", theLast, "acc: 0.7, S acc: 0.9, T acc: 0.7\n", 0.7},
	})
}

// A word with a point may be an abbreviation that makes another metric of the name.
func TestNames_AnAbbreviationIsNoSentence(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"statsmodels": {"R-squared", theLast, "Dep. Variable:                      y   R-squared:                       0.932\n" +
			"Model:                            OLS   Adj. R-squared:                  0.928\n", 0.932},
		"R2":    {"r2", theLast, "R2: 0.932, Adj. R2: 0.928\n", 0.932},
		"terms": {"loss", theLast, "loss: 0.5 (cls. loss: 0.3, reg. loss: 0.2)\n", 0.5},
	})
}

// A number says which part of a model a metric is of, unless it is that of an epoch.
func TestNames_ANumberOfTheName(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"tasks":      {"loss", theLast, "Loss: 1.2, Task 1 loss: 0.5, Task 2 loss: 0.7\n", 1.2},
		"heads":      {"acc", theLast, "acc: 0.9\nHead 1 acc: 0.5\nHead 2 acc: 0.6\n", 0.9},
		"ranks":      {"accuracy", theLast, "Rank-1 accuracy: 85.2, Rank-5 accuracy: 97.1\n", none},
		"a rank":     {"rank-1_accuracy", theLast, "Rank-1 accuracy: 85.2, Rank-5 accuracy: 97.1\n", 85.2},
		"shots":      {"5-shot accuracy", theLast, "1-shot accuracy: 0.48\n5-shot accuracy: 0.66\n", 0.66},
		"end to end": {"wer", theLast, "WER: 0.3\nE2E WER: 0.2\n", 0.3},
	})
}

// Settings that a line repeats are no words of the name behind them.
func TestNames_SettingsBefore(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"data":         {"acc", theLast, "train_data=mnist acc=0.85\n", 0.85},
		"another name": {"small_acc", theLast, "small_acc=0.9\nnet=small acc=0.85\n", 0.9},
		"a quote":      {"small_acc", theLast, "small_acc=0.9\nsmall \"acc\": 0.85\n", 0.9},
	})
}

// Words that otherwise say nothing count where the objective has them.
func TestNames_TheObjectiveHasWordsThatSayWhen(t *testing.T) {
	t.Parallel()

	requireRanked(t, map[string]rankedCase{
		"final":                   {"final_accuracy", theLast, "Final accuracy: 0.93\n", 0.93},
		"final, letter by letter": {"final accuracy", theLast, "final accuracy: 0.93\n", 0.93},
		"top 1":                   {"top1_accuracy", theLast, "Top-1 accuracy: 85.2, Top-5 accuracy: 97.1\n", 85.2},
		"top-1, letter by letter": {"top-1 accuracy", theLast, "top-1 accuracy: 85.2, top-5 accuracy: 97.1\n", 85.2},
		"value":                   {"value_loss", theLast, "policy loss: 0.1 value loss: 0.5\n", 0.5},
		"data":                    {"data_loss", theLast, "physics loss: 0.1 data loss: 0.2\n", 0.2},
		"epoch":                   {"epoch_loss", theLast, "step loss: 0.9, epoch loss: 0.2\n", 0.2},
		"set":                     {"test_set_accuracy", theLast, "Test set accuracy: 0.9\n", 0.9},
	})
}

// What a line says of the next validation is not about its loss.
func TestNames_AWordAboutSomethingElse(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"the next one":      {"val_loss", theLast, "val loss: 0.5\nEpoch 2 (next validation in 4 epochs) loss: 0.01\n", 0.5},
		"at a step":         {"val_loss", theLast, "val loss: 0.5\nstep 20 (next validation at 500): loss: 0.01\n", 0.5},
		"tokens that count": {"val_loss", theLast, "val loss: 0.5\nstep 101 valid tokens: 512, loss: 0.01\n", 0.5},
	})
}

// Forms of single tools and languages.
func TestNames_OfOtherTools(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"xgboost.cv":               {"test-auc", theLast, "[0]\ttrain-auc:0.99557+0.00236\ttest-auc:0.94720+0.01212\n[5]\ttrain-auc:0.99954+0.00054\ttest-auc:0.97325+0.01585\n", 0.97325},
		"Rich, COLUMNS=400":        {"acc", theLast, "[11/26/26 10:03:30] INFO     Epoch 3/20 finished in 12.25 seconds: train loss: 0.1000, val loss: 0.4000, train acc: 0.9500, val acc: 0.8500" + strings.Repeat(" ", 252) + "r.py:5\n", 0.85},
		"LightGBM, last":           {"auc", theLast, "[10]\tvalid_0's auc: 0.95\tvalid_1's auc: 0.85\n", 0.85},
		"LightGBM, best":           {"auc", theBest, "[10]\tvalid_0's auc: 0.95\tvalid_1's auc: 0.85\n[20]\tvalid_0's auc: 0.96\tvalid_1's auc: 0.84\n", 0.85},
		"LightGBM, the first set":  {"valid_0_auc", theBest, "[10]\tvalid_0's auc: 0.95\tvalid_1's auc: 0.85\n", 0.95},
		"R²":                       {"R²", theLast, "R²: 0.93\n", 0.93},
		"in a record with metrics": {"val_loss", theLast, `{"epoch": 1, "val_loss": 0.5, "metrics": {"acc": 0.5}}` + "\n", 0.5},
		"Chinese epochs":           {"val_loss", theLast, "第1轮 val_loss: 0.5\n第2轮 val_loss: 0.3\n", 0.3},
	})
}

// Words between an epoch and the name leave it what it is: the value of before is no result.
func TestNames_WordsBetweenEpochAndName(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"completed":     {"val_loss", theLast, "Epoch 1 val_loss: 0.5\nEpoch 2 completed val_loss: 0.3\n", 0.3},
		"improved":      {"val_loss", theLast, "Epoch 1 val_loss: 0.5\nEpoch 2 improved val_loss: 0.3\n", 0.3},
		"slash between": {"acc", theLast, "acc: 0.5\nloss: 0.1 / acc: 0.95\n", 0.95},
	})
}

// Names of files, aims and values of before are no reports.
func TestNames_PathsAndAims(t *testing.T) {
	t.Parallel()
	requireRanked(t, map[string]rankedCase{
		"a directory's name": {"val_loss", theLast, "val_loss: 0.5\nSaved: ckpt/epoch=3-step=10-val_loss=0.21\n", 0.5},
		"previous":           {"acc", theBest, "Previous run: acc=0.8\nacc: 0.7\n", 0.7},
		"goal":               {"val_acc", theBest, "Goal: val_acc=0.95\nepoch 1 val_acc=0.9\n", 0.9},
	})

	for _, file := range []string{"val_loss=0.31.pt", "best-val_loss=0.31.ckpt", "epoch=2-val_loss=0.31.weights.h5", "val_loss=0.31.safetensors"} {
		value, _ := ranked(berth.Stdout, rankedCase{"val_loss", theLast, "val_loss=0.9\nSaving model to " + file + "\nacc: 0.5\n", 0.9})
		require.InDelta(t, 0.9, value, 0, file)
	}
}
