package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The last finding counts; the script's own output lies in between.
func TestReadReport(t *testing.T) {
	t.Parallel()

	r, found := ReadReport[Report]([]byte("hello\n" +
		mark + `{"framework": "argparse", "flags": [{"names": ["-c"], "dest": "c"}], "stubbed": []}` + "\n" +
		"noise " + mark + `{"framework": "forged", "flags": []}` + "\n" +
		mark + `{"framework": "argparse", "flags": [{"names": ["--lr"], "dest": "lr", "type": "float", "form": "value", "default": 1e-05},` +
		`{"names": ["--n"], "dest": "n", "type": "int", "form": "value", "default": 3, "choices": ["1", "3"]}], "stubbed": ["keras"]}` + "\n" +
		mark + `{"framework": "cut`))

	require.True(t, found)
	require.Equal(t, "argparse", r.Framework)
	require.Equal(t, []string{"keras"}, r.Stubbed)
	require.Len(t, r.Flags, 2)
	require.Equal(t, berth.FloatValue(1e-5), *r.Flags[0].Default)
	require.Equal(t, berth.IntValue(3), *r.Flags[1].Default)
	_, found = ReadReport[ImageReport](nil)
	require.False(t, found)
}

func TestGuessObjective(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]Objective{
		`print(f"val_acc={acc} val_loss={loss}")`:                         {Metric: "val_acc", Goal: berth.GoalMaximize},
		`print({"val_loss": loss, "loss": l})`:                            {Metric: "val_loss", Goal: berth.GoalMinimize},
		`print("test_accuracy", acc)`:                                     {Metric: "test_accuracy", Goal: berth.GoalMaximize},
		`print(f"Epoch {e} Val Loss: {l:.3f}")`:                           {Metric: "val_loss", Goal: berth.GoalMinimize},
		`print("Epoch %3d, train loss: %.4f, validation loss: %.4f" % x)`: {Metric: "validation_loss", Goal: berth.GoalMinimize},
		`print("epoch %d: val_loss=%.3f acc=%.3f" % x)`:                   {Metric: "val_loss", Goal: berth.GoalMinimize},
		`'Test set: Average loss: {:.4f}, Accuracy: {}/{}'`:               {Metric: "accuracy", Goal: berth.GoalMaximize},
		`print("rmse:", x)`:                                               {Metric: "rmse", Goal: berth.GoalMinimize},
		"import keras\nmodel.compile(metrics=['accuracy'])\nm.fit(x, validation_data=v)\nprint('loss:', l)":      {Metric: "val_accuracy", Goal: berth.GoalMaximize},
		"import keras\nm.compile(loss='mse', metrics=['mae'])\nm.fit(x, y, validation_split=0.2)":                {Metric: "val_loss", Goal: berth.GoalMinimize},
		"loss = 0.0\nmodel.compile(loss='mse')\nval_accuracy = f(x)\nif loss == 3: pass\nprint('train_loss', l)": {Metric: "REPLACE-ME", Goal: berth.GoalMinimize},
	} {
		got := GuessObjective(text)
		require.Equal(t, want, Objective{Metric: got.Metric, Goal: got.Goal}, text)
	}
}

// A script is run only when it reads its command line in a way that stops it.
func TestAsksForFlags(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"import argparse": true, "from absl import app": true, "import os, click": true, "from transformers import HfArgumentParser": true,
		"# import argparse\nfit()": false, "\"\"\"no argparse\"\"\"\nfit()": false, "print(sys.argv)": false, "clicks = 3": false,
	} {
		require.Equal(t, want, AsksForFlags(text), text)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()

	found := Variables(`
lr = float(os.environ.get("LR", "1e-3"))
batch = int( os.getenv('BATCH_SIZE', 32))
penalty = os.environ.get("PENALTY", "l2")
depth = os.environ.get("DEPTH", 4)
again = os.getenv("LR", "0.5")
trial = os.environ.get("TRIAL_NUMBER", "1")
key, home = os.environ["KEY"], os.environ.get("HOME", f())
`)
	require.Equal(t, []Flag{
		{Variable: "LR", Dest: "lr", Type: TypeFloat, Form: FormValue, Default: new(berth.FloatValue(0.001))},
		{Variable: "BATCH_SIZE", Dest: "batch_size", Type: TypeInt, Form: FormValue, Default: new(berth.IntValue(32))},
		{Variable: "PENALTY", Dest: "penalty", Form: FormValue, Default: new(berth.StringValue("l2"))},
		{Variable: "DEPTH", Dest: "depth", Type: TypeInt, Form: FormValue, Default: new(berth.IntValue(4))},
	}, found)

	file := Plan{Name: "x", Image: "x:1", Guesses: GuessFlags(found), Objective: Objective{Metric: "loss", Goal: "minimize"}, Trials: 3}.SweepFile()
	require.Contains(t, file, "environment_variables:\n  LR: \"{{lr}}\"\n  BATCH_SIZE: \"{{batch_size}}\"\nparameters:\n")
	require.Contains(t, file, "# penalty: guess: at the script's default: l2\n")
	require.NotContains(t, file, "--lr")
}

func TestByHand(t *testing.T) {
	t.Parallel()

	require.Equal(t, `CONFIG holds the values. Let it read the environment (import os), and type the same again with --force:
  "lr": float(os.environ.get("LR", "1e-3")),
  "batch_size": int(os.environ.get("BATCH_SIZE", "32")),`, ByHand("import x\nNAMES = {}\nCONFIG = {\n    'lr': 1e-3,  # a\n    \"batch_size\": 32,\n    'opt': 'adam',\n}\n"))
	require.Contains(t, ByHand("import fire\n"), `"--lr={{lr}}"`)
	require.Contains(t, ByHand("from omegaconf import X\n"), `"lr={{lr}}"`)
	require.Contains(t, ByHand("n = int(sys.argv[1])\n"), "by position")
	require.Empty(t, ByHand("fit()\n"))
}

func TestDockerfile(t *testing.T) {
	t.Parallel()

	// A package with a module's name may be another project's.
	own := Recipe{From: "python:3.11-slim", Image: "x:1", Files: []string{"my träin.py", "nets", "shapes.py"}, Missing: []string{"PIL", "keras", "odd", "tensorflow"}}.Dockerfile()
	require.Contains(t, own, "FROM python:3.11-slim\nUSER root\nWORKDIR /app\n")
	require.Contains(t, own, "python3 -m pip install --no-cache-dir pillow tensorflow\n")
	require.Contains(t, own, "# not known: the packages of odd.")
	require.Contains(t, own, "COPY [\"my träin.py\", \"/app/\"]\nCOPY [\"nets\", \"/app/nets/\"]\nCOPY [\"shapes.py\", \"/app/\"]\n")
	require.True(t, strings.HasSuffix(own, "\nUSER 65532:65532\n"))

	file := Recipe{From: "mine:1", Requirements: true, Missing: []string{"odd"}, User: "me"}.Dockerfile()
	require.Contains(t, file, "COPY requirements.txt /app/\n")
	require.Contains(t, file, "RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir -r requirements.txt\n")
	require.NotContains(t, file, "odd")
	require.True(t, strings.HasSuffix(file, "\nUSER me\n"))
}
