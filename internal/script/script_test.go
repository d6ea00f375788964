package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The last finding counts, and what the script prints in between is its own.
func TestReadReport(t *testing.T) {
	t.Parallel()

	r := ReadReport([]byte("hello\n" +
		mark + `{"look": {"in_image": "/app/train.py"}, "stubbed": []}` + "\n" +
		"{\"flags\": []}\n" +
		mark + `{"framework": "argparse", "flags": [{"names": ["-c"], "dest": "c"}], "stubbed": []}` + "\n" +
		"noise " + mark + `{"framework": "forged", "flags": []}` + "\n" +
		mark + `{"framework": "argparse", "flags": [{"names": ["--lr"], "dest": "lr", "type": "float", "form": "value", "default": 1e-05},` +
		`{"names": ["--n"], "dest": "n", "type": "int", "form": "value", "default": 3, "choices": [1, 3], "min": 1}], "stubbed": ["keras"]}` + "\n" +
		mark + `{"framework": "cut`))

	require.Equal(t, "/app/train.py", r.Look.InImage)
	require.Equal(t, "argparse", r.Framework)
	require.Equal(t, []string{"keras"}, r.Stubbed)
	require.Len(t, r.Flags, 2)
	require.Equal(t, berth.FloatValue(1e-5), *r.Flags[0].Default)
	require.Equal(t, berth.IntValue(3), *r.Flags[1].Default)
	require.Equal(t, berth.Values{berth.IntValue(1), berth.IntValue(3)}, r.Flags[1].Choices)
	require.InDelta(t, 1.0, *r.Flags[1].Min, 0)

	r = ReadReport([]byte(mark + `{"error": {"type": "ModuleNotFoundError", "message": "No module named 'x'", "place": "a.py:3", "module": "x"}, "stubbed": []}`))
	require.Equal(t, &Trouble{Type: "ModuleNotFoundError", Message: "No module named 'x'", Place: "a.py:3", Module: "x"}, r.Trouble)
	require.True(t, ReadReport([]byte(mark+`{"ended": "exit 0"}`)).Ended)
	require.Equal(t, Report{}, ReadReport(nil))
}

func TestFlagsOfHelp(t *testing.T) {
	t.Parallel()

	got := FlagsOfHelp(`usage: train.py [-h] [--lr LR]

options:
  -h, --help            show this help message and exit
  --lr LR               learning rate (default: 0.001)
  -b N, --batch-size N  how many at once
                        [default: 64]
  --opt {adam,sgd}      which one (default: adam)
  --quiet               say less
  --steps=<int>         how many, default 10.
`)

	names := make([]string, len(got))
	for i, f := range got {
		names[i] = strings.Join([]string{f.Names[0], f.Dest, f.Type, f.Form}, " ")
	}

	require.Equal(t, []string{
		"--lr lr float value", "--batch-size batch_size int value", "--opt opt str value", "--quiet quiet bool true", "--steps steps str value",
	}, names)
	require.Equal(t, berth.FloatValue(0.001), *got[0].Default)
	require.Equal(t, berth.IntValue(64), *got[1].Default)
	require.Equal(t, berth.Values{berth.StringValue("adam"), berth.StringValue("sgd")}, got[2].Choices)
}

func TestGuessObjective(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]Objective{
		`print(f"val_acc={acc} val_loss={loss}")`:                                                                            {Metric: "val_acc", Goal: berth.GoalMaximize},
		`print({"val_loss": loss, "loss": l})`:                                                                               {Metric: "val_loss", Goal: berth.GoalMinimize},
		`print("test_accuracy", acc)`:                                                                                        {Metric: "test_accuracy", Goal: berth.GoalMaximize},
		`print(f"Epoch {e} Val Loss: {l:.3f}")`:                                                                              {Metric: "val_loss", Goal: berth.GoalMinimize},
		`'Test set: Average loss: {:.4f}, Accuracy: {}/{}'`:                                                                  {Metric: "accuracy", Goal: berth.GoalMaximize},
		`print("rmse", x)`:                                                                                                   {Metric: "rmse", Goal: berth.GoalMinimize},
		"import keras\nmodel.compile(metrics=['accuracy'])\nm.fit(x, validation_data=v)":                                     {Metric: "val_accuracy", Goal: berth.GoalMaximize},
		"import keras\nm.compile(loss='mse', metrics=['mae'])\nm.fit(x, y, validation_split=0.2)":                            {Metric: "val_loss", Goal: berth.GoalMinimize},
		"import keras\nm.compile(metrics=[keras.metrics.AUC(name='auc')])\nm.fit(x, y, validation_data=(a, b))":              {Metric: "val_auc", Goal: berth.GoalMaximize},
		"import keras\nm.compile(metrics=[keras.metrics.BinaryAccuracy()])\nm.fit(x, y, validation_split=.1)\nprint('loss')": {Metric: "val_binary_accuracy", Goal: berth.GoalMaximize},
		"from keras import x\nmodel.compile(loss='mse')\nm.fit(x, validation_split=0.2)\nval_loss":                           {Metric: "val_loss", Goal: berth.GoalMinimize},
	} {
		got := GuessObjective(text)
		require.True(t, got.Sure, text)
		require.Equal(t, want, Objective{Metric: got.Metric, Goal: got.Goal}, text)
	}

	require.False(t, GuessObjective("# val_accuracy\npass").Sure, "a comment reports nothing")
}

func TestRequirements(t *testing.T) {
	t.Parallel()

	require.Equal(t, []string{"numpy", "pillow", "scikit-learn", "tensorflow"}, Requirements(
		"import os, sys\nimport numpy as np, json\nfrom sklearn.svm import SVC\nimport tensorflow.keras as k\nimport keras\nfrom PIL import Image\nimport shapes\n# import torch\n",
		[]string{"shapes"}))
	require.Equal(t, []string{"keras", "tensorflow"}, Requirements("    import keras\n", nil))
	require.Empty(t, Requirements("from __future__ import annotations\n", nil))
	require.Empty(t, Requirements("\"\"\"Usage:\n    import torch first\nimport numpy\n\"\"\"\nimport numpy here\n", nil), "prose")

	// A package of a module's name may be somebody else's.
	require.Equal(t, []string{"pymupdf", "python-dotenv"}, Requirements("import fitz, dotenv\nimport pkg_resources\nimport ours\nimport theirs\n", []string{"ours"}))
	require.Equal(t, []string{"theirs"}, Unknown("import fitz, dotenv\nimport pkg_resources\nimport ours\nimport theirs\n", []string{"ours"}))
}

// A script is run only when it reads its command line in a way that stops it.
func TestAsksForFlags(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"import argparse": true, "from absl import app": true, "import click": true, "flags = tf.app.flags": true, "parser = HfArgumentParser(A)": true,
		"# import argparse\nfit()": false, "\"\"\"no argparse\"\"\"\nfit()": false, "print(sys.argv)": false, "clicks = 3": false,
	} {
		require.Equal(t, want, AsksForFlags(text), text)
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()

	own := Recipe{From: "python:3.11-slim", Image: "x:1", Script: "train.py", Files: []string{"nets", "shapes.py"}, Packages: []string{"numpy"}}.Dockerfile()
	require.True(t, strings.HasPrefix(own, DockerfileMark))
	require.Contains(t, own, "FROM python:3.11-slim\nWORKDIR /app\n")
	require.Contains(t, own, "RUN pip install --no-cache-dir --no-compile numpy && (python3 -m compileall")
	require.Contains(t, own, "COPY [\"train.py\", \"/app/\"]\nCOPY [\"nets\", \"/app/nets/\"]\nCOPY [\"shapes.py\", \"/app/\"]\n")
	require.True(t, strings.HasSuffix(own, "USER 65532:65532\nENTRYPOINT []\n"))

	file := Recipe{From: "python:3.11-slim", Script: "train.py", HasFile: true, Packages: []string{"numpy"}}.Dockerfile()
	require.Contains(t, file, "COPY requirements.txt /app/\nRUN pip install --no-cache-dir --no-compile -r requirements.txt")

	added := Recipe{From: "mine:1", Script: "train.py", AddsOnly: true, User: "me"}.Dockerfile()
	require.Contains(t, added, "FROM mine:1\nUSER root\n")
	require.NotContains(t, added, "pip install")
	require.True(t, strings.HasSuffix(added, "USER me\nENTRYPOINT []\n"))

	for _, root := range []string{"", "root", "0", "0:0", "root:root"} {
		added = Recipe{From: "mine:1", Script: "train.py", AddsOnly: true, User: root}.Dockerfile()
		require.True(t, strings.HasSuffix(added, "USER 65532:65532\nENTRYPOINT []\n"), root)
	}

	// What a person added is kept, and nothing else.
	for _, r := range []Recipe{
		{From: "x:1", Image: "x:1", Script: "my träin.py", Files: []string{"nets"}, Packages: []string{"numpy"}, Unknown: []string{"odd"}},
		{From: "x:1", Image: "x:1", Script: "a.py", AddsOnly: true, User: "me"},
		{From: "x:1", Image: "x:1", Script: "a.py", HasFile: true},
	} {
		require.Empty(t, OwnLines(r.Dockerfile(), r))

		r.Own = []string{"COPY data/ /app/data/", "RUN echo a \\", "  b"}
		require.Equal(t, r.Own, OwnLines(r.Dockerfile(), r))
		require.Contains(t, r.Dockerfile(), "\nCOPY data/ /app/data/\nRUN echo a \\\n  b\n")
	}
}
