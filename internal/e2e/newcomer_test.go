//go:build integration

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// newcomer is an unprepared script of testdata/newcomer, and the sweep that an
// experienced user would write for it.
type newcomer struct {
	name, image string
	learned     string   // init's report on the flags
	parameters  []string // of the sweep file
	objective   berth.Objective
	source      string // of its metrics
	model       string // that the best trial leaves, below the downloaded directory
	// loads is a Python program that loads /best/<model> in the built image, and
	// prints the objective's value of it.
	loads string
	// keepsBest: the model comes from the script's best epoch, by an objective to
	// minimize.
	keepsBest bool
}

var kerasDigits = newcomer{
	name: "digits", image: "berth-examples/tensorflow:1",
	learned: "9 flags of argparse; searched: learning_rate, batch_size, dropout; fixed: epochs, seed, output; at the script's default: filters, optimizer, augment",
	parameters: []string{
		`{"name":"learning_rate","type":"float","min":0.00003,"max":0.01,"log":true,"default":0.001}`,
		`{"name":"batch_size","type":"categorical","values":[32,64,128],"default":64,"memory":true}`,
		`{"name":"epochs","type":"fixed","value":3}`,
		`{"name":"dropout","type":"float","min":0,"max":0.5,"default":0.25}`,
		`{"name":"seed","type":"fixed","value":42}`,
		`{"name":"output","type":"fixed","value":"/trial/out/model.keras"}`,
	},
	objective: berth.Objective{Metric: "val_accuracy", Goal: berth.GoalMaximize, Strategy: "last"},
	source:    "shim",
	model:     "model.keras",
	loads: "import keras, train; _, x, _, y = train.load_data(42); m = keras.models.load_model('/best/model.keras'); " +
		"print('value', m.evaluate(x, y, verbose=0)[1])",
}

// A script written without Berth, unchanged Keras, gets to its best model on disk with
// four commands, and no change of the sweep file or the Dockerfile.
func TestNewcomer_FourCommandsToTheBestModel(t *testing.T) {
	t.Parallel()
	kerasDigits.walk(t, plain(t))
}

// walk types only a user's commands.
func (n newcomer) walk(t *testing.T, s *stack) {
	t.Helper()

	dir := filepath.Join(t.TempDir(), n.name)
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/newcomer/"+n.name)))

	env := []string{"BERTH_SERVER=" + s.url, "DOCKER_BUILDKIT=0"}
	commands := 0
	types := func(words ...string) typed {
		t.Helper()

		commands++
		began := time.Now()
		got := typeIn(t, dir, env, words...)
		t.Logf("command %d took %5.1f s: %s", commands, time.Since(began).Seconds(), strings.Join(words, " "))
		require.Equal(t, 0, got.code, "%s\n%s", got.out, got.err)

		return got
	}

	got := types("berth", "init", "train.py", "--image", n.image, "--trials", "2", "--timeout", "10m") // of the imports, on a machine that does much else
	require.Contains(t, got.out, n.learned)
	require.Contains(t, got.out, "objective: "+string(n.objective.Goal)+" "+n.objective.Metric+" (")

	// The test runs the commands that the output names next.
	image := regexp.MustCompile(`docker build -t (` + n.name + `-train-[0-9a-f]{4}:1) \.`).FindStringSubmatch(got.out)
	require.NotNil(t, image, got.out)

	build, submit := "docker build -t "+image[1]+" .", "berth sweep submit -f sweep.yaml --wait"
	require.Contains(t, got.out, "then type:\n  "+build+"\n  "+submit+"\n")

	file := decoded(t, filepath.Join(dir, "sweep.yaml"))
	require.Equal(t, n.parameters, written(t, file))
	require.Equal(t, &n.objective, file.Objective)

	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "rmi", image[1]).Run() })
	types(strings.Fields(build)...)

	got = types(strings.Fields(submit)...)
	next := regexp.MustCompile(`(?m)^next: (berth sweep best (\w+) --download)   `).FindStringSubmatch(got.out)
	require.NotNil(t, next, "it says how to get the best model: %s", got.out)

	got = types(strings.Fields(next[1])...)
	require.Equal(t, 4, commands)

	sweep := s.sweep(next[2])
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, 2, sweep.Counts.Succeeded, "%+v", s.attempts(sweep.ID))
	require.Equal(t, 2, sweep.Counts.Total)
	require.NotNil(t, sweep.Best)

	for _, a := range s.attempts(sweep.ID) {
		require.Equal(t, n.source, a.MetricSource)
	}

	s.requireQuiet(sweep.ID)

	best := filepath.Join(dir, "sweep-"+next[2]+"-trial-"+strconv.Itoa(sweep.Best.Trial))
	require.Contains(t, got.out, filepath.Base(best))
	require.FileExists(t, filepath.Join(best, n.model))

	value := n.load(t, image[1], best)

	if n.keepsBest { // and the last epoch counted
		require.LessOrEqual(t, value, sweep.Best.Value+0.001)
	} else {
		require.InDelta(t, sweep.Best.Value, value, 0.002, "the model is that trial's")
	}
}

// load returns the model's value, computed in the image.
func (n newcomer) load(t *testing.T, image, dir string) float64 {
	t.Helper()

	run := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", "none", "--user", "0:0", "--workdir", "/app",
		"--volume", dir+":/best:ro", image, "python3", "-c", n.loads)
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))

	found := regexp.MustCompile(`(?m)^value ([-+.\de]+)$`).FindStringSubmatch(string(out))
	require.NotNil(t, found, string(out))

	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)

	return value
}

// typeIn runs a command in a directory, as a user types it; berth is the test binary.
func typeIn(t *testing.T, dir string, env []string, words ...string) typed {
	t.Helper()

	if words[0] == "berth" {
		return berthIn(t, dir, env, words[1:]...)
	}

	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))

	return typed{out: string(out)}
}
