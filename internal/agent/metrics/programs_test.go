package metrics_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// program is what a program prints, and the value that its author means by a name.
type program struct {
	name, objective string
	want            float64
	text            string
}

// programs print this when standard output is no terminal, by their source.
var programs = []program{
	{"PyTorch example, MNIST", "accuracy", 0.9913, "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.282550\nTrain Epoch: 1 [59520/60000 (99%)]\tLoss: 0.001234\n\n" +
		"Test set: Average loss: 0.0494, Accuracy: 9834/10000 (98%)\n\nTrain Epoch: 2 [0/60000 (0%)]\tLoss: 0.040101\n\nTest set: Average loss: 0.0265, Accuracy: 9913/10000 (99%)\n\n"},
	{"PyTorch example, ImageNet", "Acc@1", 69.758, "Epoch: [0][    1/5005]\tTime  4.105 ( 4.105)\tData  2.911 ( 2.911)\tLoss 7.0331e+00 (7.0331e+00)\tAcc@1   0.00 (  0.00)\tAcc@5   0.78 (  0.78)\n" +
		"Test: [  1/196]\tTime  3.900 ( 3.900)\tLoss 9.1011e-01 (9.1011e-01)\tAcc@1  76.95 ( 76.95)\tAcc@5  93.36 ( 93.36)\n" +
		"Test: [191/196]\tTime  0.212 ( 0.412)\tLoss 1.8022e+00 (1.2477e+00)\tAcc@1  55.47 ( 69.61)\tAcc@5  82.03 ( 89.01)\n *   Acc@1 69.758 Acc@5 89.078\n"},
	{"PyTorch quickstart", "accuracy", 61.9, "Epoch 1\n-------------------------------\nloss: 2.303494  [   64/60000]\nloss: 2.294637  [ 6464/60000]\nTest Error: \n Accuracy: 50.9%, Avg loss: 2.150610 \n\n" +
		"Epoch 2\n-------------------------------\nloss: 2.168209  [   64/60000]\nTest Error: \n Accuracy: 61.9%, Avg loss: 1.883226 \n\nDone!\n"},
	{"PyTorch transfer tutorial", "val_acc", 0.9346, "Epoch 0/1\n----------\ntrain Loss: 0.6302 Acc: 0.6803\nval Loss: 0.2405 Acc: 0.9085\n\n" +
		"Epoch 1/1\n----------\ntrain Loss: 0.4117 Acc: 0.8402\nval Loss: 0.1806 Acc: 0.9346\n\nTraining complete in 0m 36s\nBest val Acc: 0.940000\n"},
	{"Lightning, tqdm", "val_acc", 0.912, "\rEpoch 0:   0%|          | 0/938 [00:00<?, ?it/s]\rEpoch 0:  53%|█████▎    | 500/938 [00:04<00:03, 120.1it/s, v_num=0, train_loss=0.411]" +
		"\rEpoch 0: 100%|██████████| 938/938 [00:08<00:00, 115.6it/s, v_num=0, train_loss=0.312, val_loss=0.299, val_acc=0.891]\n" +
		"\rEpoch 1: 100%|██████████| 938/938 [00:08<00:00, 115.6it/s, v_num=0, train_loss=0.281, val_loss=0.255, val_acc=0.912]\n`Trainer.fit` stopped: `max_epochs=2` reached.\n"},
	{"Lightning, Rich", "val_acc", 0.912, "Epoch 1/1  ━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━ 400/938 0:00:03 • 0:00:04 118.23it/s v_num: 0.000 train_loss: 0.391 val_acc: 0.5\n" +
		"Epoch 1/1  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 938/938 0:00:08 • 0:00:00 118.23it/s v_num: 0.000 train_loss: 0.281 val_loss: 0.255 val_acc: 0.912\n"},
	{"Lightning, test table", "test_acc", 0.9711999893188477, "┏━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━┓\n┃        Test metric        ┃       DataLoader 0        ┃\n┡━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━┩\n" +
		"│         test_acc          │    0.9711999893188477     │\n│         test_loss         │    0.09337051957845688    │\n└───────────────────────────┴───────────────────────────┘\n"},
	{"torchvision, classification", "Acc@1", 69.758, "Epoch: [0]  [   0/5005]  eta: 2:01:10  lr: 0.1  img/s: 112.4  loss: 7.0331 (7.0331)  acc1: 0.0000 (0.0000)  acc5: 0.7812 (0.7812)  time: 1.4\n" +
		"Epoch: [0] Total time: 0:20:01\nTest:   [  0/196]  eta: 0:03:01  loss: 0.9101 (0.9101)  acc1: 76.9531 (76.9531)  acc5: 93.3594 (93.3594)  time: 0.9\nTest:  Total time: 0:01:02\nTest:  Acc@1 69.758 Acc@5 89.078\n"},
	{"torchvision, detection", "loss", 0.2456, "Epoch: [0]  [ 0/60]  eta: 0:01:35  lr: 0.000090  loss: 2.7890 (2.7890)  loss_classifier: 0.7331 (0.7331)  time: 1.5\n" +
		"Epoch: [0]  [59/60]  eta: 0:00:00  lr: 0.005000  loss: 0.2101 (0.2456)  loss_classifier: 0.0331 (0.0512)  time: 0.5\nEpoch: [0] Total time: 0:00:31 (0.5203 s / it)\n" +
		" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.703\n"},
	{"nanoGPT", "val_loss", 2.5013, "step 0: train loss 4.2874, val loss 4.2823\niter 0: loss 4.2659, time 2200.10ms, mfu -100.00%\nstep 10: train loss 2.4742, val loss 2.5013\niter 10: loss 2.4601, time 41.20ms, mfu 3.01%\n"},
	{"JAX MNIST", "Test set accuracy", 0.9701, "Epoch 0 in 4.01 sec\nTraining set accuracy 0.9251\nTest set accuracy 0.9260\nEpoch 1 in 3.91 sec\nTraining set accuracy 0.9722\nTest set accuracy 0.9701\n"},
	{"Flax MNIST", "test_accuracy", 98.68, "I1125 16:00:01.123456 140 train.py:155] epoch:  1, train_loss: 0.2414, train_accuracy: 92.72, test_loss: 0.0612, test_accuracy: 97.91\n" +
		"I1125 16:00:09.123456 140 train.py:155] epoch:  2, train_loss: 0.0601, train_accuracy: 98.15, test_loss: 0.0401, test_accuracy: 98.68\n"},
	{"fastai, table", "accuracy", 0.987654, "epoch     train_loss  valid_loss  accuracy  time    \n0         0.178123    0.061234    0.977654  00:12     \n1         0.098123    0.041234    0.987654  00:12     \n"},
	{"a PyTorch loop with print(args)", "val_acc", 0.91, "Namespace(lr=0.001, batch_size=64, epochs=2)\nEpoch 1: train loss 1.000, val loss 1.200, val acc 0.60\nEpoch 2: train loss 0.300, val loss 0.400, val acc 0.91\n"},
	{"timm", "top1", 79.3, "Train: 0 [   0/1251 (  0%)]  Loss: 6.95 (6.95)  Time: 2.1s\nTest: [   0/48]  Time: 2.1 (2.1)  Loss:   0.8 (0.8)  Acc@1: 85.0 (85.0)\n" +
		"{\n    \"top1\": 79.3,\n    \"top5\": 94.9\n}\n"},
	{"a CSV on standard output", "val_acc", 0.91, "epoch,train_loss,val_acc\n1,0.812,0.62\n2,0.301,0.91\n"},
}

// recorded are programs of testdata/programs, run with the packages of PyPI: what they printed
// into a pipe, and the value that their author means.
var recorded = []string{
	"accelerate_nlp", "hf_trainer", "keras_evaluate", "keras_verbose1", "keras_verbose2", "lightgbm_train", "sklearn_print", "sklearn_report", "xgboost_train",
}

// Programs are read as their authors mean. Where a line cannot be, Berth says what to write.
func TestPrograms(t *testing.T) {
	t.Parallel()

	right, all := 0, slices.Clone(programs)
	var table strings.Builder

	for _, name := range recorded {
		text, err := os.ReadFile("testdata/programs/" + name + ".txt")
		require.NoError(t, err)

		var meant struct {
			Objective string
			Want      float64
		}

		data, err := os.ReadFile("testdata/programs/" + name + ".json")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &meant))

		all = append(all, program{name, meant.Objective, meant.Want, string(text)})
	}

	for _, p := range all {
		value, reader := lastOf(p.objective, p.text)

		if value == nil {
			table.WriteString("unread  " + p.name + ": " + reader.Near.First + " => " + reader.Near.Pattern + "\n")
			require.NotEmpty(t, reader.Near.Pattern, p.name)

			continue
		}

		require.InDelta(t, p.want, *value, 1e-4, "%s: %s", p.name, reader.From.Text)
		table.WriteString("right   " + p.name + "\n")

		right++
	}

	t.Log("\n" + table.String())
	require.GreaterOrEqual(t, right, 24)
	require.Len(t, all, 25)
}

// lastOf is the last value of the objective in a text.
func lastOf(objective, text string) (value *float64, reader *metrics.Reader) {
	reader = metrics.NewReader("", objective, "lr", "batch_size")

	for line := range strings.SplitSeq(text, "\n") {
		for _, p := range reader.Read(berth.Stdout, line, noon) {
			if p.Name == objective {
				value = &p.Value
			}
		}
	}

	return value, reader
}

// The package stays small: one grammar, few patterns.
func TestSize(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("*.go")
	require.NoError(t, err)

	patterns := 0

	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}

		data, err := os.ReadFile(file)
		require.NoError(t, err)

		patterns += strings.Count(string(data), "regexp.MustCompile(")
	}

	require.LessOrEqual(t, patterns, 5)
}
