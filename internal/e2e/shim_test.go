//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// unchanged is a sweep of one trial of plain Keras that writes no metrics file.
// What examples/digits prints counts for nothing where metrics come from a file.
const unchanged = `{name: shim, image: 'berth-examples/digits:1', workdir: /app, command: [python3, train.py, '--epochs=2'], ` +
	`objective: {metric: val_accuracy}, limits: {max_trials: 1}, enqueue: [{lr: 0.01}], ` +
	`resources: {memory: 1GiB}, probe: {mode: off}%s}`

// printed is the last line of JSON in a log, and how many there are.
func (s *stack) printed(attempt string) (last map[string]float64, lines int) {
	s.t.Helper()

	for line := range strings.Lines(s.log(attempt)) {
		var metrics map[string]float64
		if json.Unmarshal([]byte(line), &metrics) == nil {
			last, lines = metrics, lines+1
		}
	}

	return last, lines
}

func (s *stack) curve(attempt, name string) []client.Metric {
	s.t.Helper()

	response, err := s.api.ListMetricsWithResponse(s.t.Context(), attempt, &client.ListMetricsParams{Name: &name})
	require.NoError(s.t, err)
	require.NotNil(s.t, response.JSON200, string(response.Body))

	return response.JSON200.Data
}

// An unchanged Keras script is a trial: its epochs become its curve, the last of
// them its value. An earlier fit, of another model, has its own steps.
func TestShim_UnchangedKerasScript(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "3GiB")
	id := s.submit(fmt.Sprintf(unchanged, ", metrics: {source: file}"))
	sweep := s.until(id, 3*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, 1)

	printed, epochs := s.printed(attempts[0].ID)
	require.Equal(t, 2, epochs)
	require.InDelta(t, printed["val_accuracy"], *s.trials(id)[0].Value, 1e-6, "it is what the script printed of its last epoch")

	curve := s.curve(attempts[0].ID, "val_accuracy")
	require.Len(t, curve, 2)
	require.Equal(t, []int64{4, 5}, []int64{curve[0].Step, curve[1].Step}, "after three epochs of the first fit")
	require.Len(t, s.curve(attempts[0].ID, "loss"), 5)

	usage := attempts[0].Usage
	t.Logf("%d steps of %.2f ms", usage.Steps, 1000*usage.StepSeconds)
	require.Positive(t, usage.Steps)
	require.Positive(t, usage.StepSeconds)
	require.Less(t, usage.StepSeconds*float64(usage.Steps), usage.WallSeconds)

	s.requireQuiet()
}

// The same script without the shim still ends; with the shim it has the metrics
// that it prints, when printed metrics count.
func TestShim_FalseAndStdout(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "3GiB")
	off := s.submit(fmt.Sprintf(unchanged, ", shim: false, metrics: {source: file}"))
	prints := s.submit(fmt.Sprintf(unchanged, ", metrics: {source: stdout}"))
	s.until(off, 3*time.Minute, ended)

	without := s.attempts(off)
	require.Equal(t, "no_result", without[0].FailureKind, without[0].Message)
	require.Empty(t, s.curve(without[0].ID, "loss"))

	sweep := s.until(prints, 3*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	with := s.attempts(prints)[0].ID
	for _, name := range []string{"val_accuracy", "loss"} {
		curve := s.curve(with, name)
		require.Len(t, curve, 2, "its own two epochs, and nothing of the shim")
		require.Equal(t, []int64{1, 2}, []int64{curve[0].Step, curve[1].Step})
	}

	printed, _ := s.printed(with)
	require.InDelta(t, printed["val_accuracy"], *s.trials(prints)[0].Value, 0)
}

// resumable is plain Keras as its guide has it: BackupAndRestore, and a result at
// the end.
const resumable = `
import os, time
import keras, numpy as np
x = np.random.default_rng(0).random((64, 8)).astype("float32")
y = (x.sum(1) > 4).astype("int32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.2)
backup = keras.callbacks.BackupAndRestore("/trial/checkpoint/backup")
model.fit(x, y, validation_split=0.5, batch_size=8, epochs=12, verbose=0, callbacks=[backup, Slow()])
print("trained to the end")
`

// A trial ends after SIGTERM between two batches with code 75, has no result,
// and goes on from its backup.
func TestShim_StopAndResume(t *testing.T) {
	t.Parallel()

	command, err := json.Marshal([]string{"python3", "-c", resumable})
	require.NoError(t, err)

	s := start(t, "--memory", "3GiB")
	id := s.submit(strings.Replace(fmt.Sprintf(unchanged, ""), "[python3, train.py, '--epochs=2']", string(command), 1))

	s.until(id, time.Minute, running(1))
	require.Eventually(t, func() bool { // two epochs are saved, ten remain
		attempts := s.attempts(id)

		return len(attempts) == 1 && len(s.curve(attempts[0].ID, "val_accuracy")) >= 2
	}, 2*time.Minute, tick)

	for _, c := range s.running() {
		out, err := s.docker("stop", "-t", "60", c.id).CombinedOutput()
		require.NoError(t, err, string(out))
	}

	sweep := s.until(id, 3*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, 2)

	stopped, resumed := attempts[0], attempts[1]
	require.Equal(t, "preempted", stopped.FailureKind, stopped.Message)
	require.Equal(t, 75, *stopped.ExitCode)
	require.Nil(t, stopped.Value, "what is half trained is no result")
	require.Equal(t, "ok", resumed.FailureKind, resumed.Message)

	before, after := s.curve(stopped.ID, "val_accuracy"), s.curve(resumed.ID, "val_accuracy")
	require.EqualValues(t, len(before), before[len(before)-1].Step)
	require.EqualValues(t, len(before)+1, after[0].Step, "it goes on after the last epoch that was saved")
	require.EqualValues(t, 12, after[len(after)-1].Step)
	require.InDelta(t, *after[len(after)-1].Value, *resumed.Value, 0)

	s.requireQuiet()
}
