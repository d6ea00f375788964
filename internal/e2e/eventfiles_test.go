//go:build integration && nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// boarded is plain Keras with its callback for TensorBoard, as its guide has it.
// Its output is for this test: with event files, printed metrics count for
// nothing.
const boarded = `
import json, os
import keras, numpy as np
x = np.random.default_rng(0).random((64, 8)).astype("float32")
y = (x.sum(1) > 4).astype("int32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
board = keras.callbacks.TensorBoard(os.environ["TRIAL_PARAM_LOGS"], histogram_freq=1, update_freq=2)
history = model.fit(x, y, validation_split=0.5, batch_size=8, epochs=3, verbose=0, callbacks=[board])
for i in range(3):
    print(json.dumps({name: values[i] for name, values in history.history.items()}), flush=True)
`

// Keras' callback for TensorBoard, unchanged and in a real container, gives each
// trial its metrics, in /trial/out and in the directory beside the script. With
// the shim and without it the event files count.
func TestExports_KerasTensorBoardIsRead(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "3GiB")
	command, err := json.Marshal([]string{"python3", "-c", boarded})
	require.NoError(t, err)

	id := s.submit(fmt.Sprintf(`{name: board, image: 'berth-test/keras-tensorboard:1', workdir: /app, command: %s, `+
		`parameters: [{name: logs, values: [/trial/out/logs, logs/fit]}], search: {algorithm: grid}, objective: {metric: val_accuracy}, `+
		`resources: {memory: 1GiB}, probe: {mode: off}, metrics: {source: tensorboard}}`, command))
	sweep := s.until(id, 3*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, 2)

	for i, a := range attempts {
		require.Equal(t, "ok", a.FailureKind, a.Message)

		last, epochs := s.printed(a.ID)
		require.Equal(t, 3, epochs)

		for printed, name := range map[string]string{
			"accuracy": "epoch_accuracy", "loss": "epoch_loss", "val_accuracy": "val_epoch_accuracy", "val_loss": "val_epoch_loss",
		} {
			curve := s.curve(a.ID, name)
			require.Len(t, curve, 3, name)
			require.Equal(t, []int64{0, 1, 2}, []int64{curve[0].Step, curve[1].Step, curve[2].Step})
			require.InDelta(t, last[printed], *curve[2].Value, 1e-6, name)
		}

		require.Len(t, s.curve(a.ID, "val_accuracy"), 3, "by the name that fit gives it, too")
		require.InDelta(t, last["val_accuracy"], *a.Value, 1e-6)
		require.NotEmpty(t, s.curve(a.ID, "batch_loss"))
		require.Empty(t, s.curve(a.ID, "loss"), "the shim is silent once the script reports the objective (trial %d)", i+1)
	}

	s.requireQuiet()
}
