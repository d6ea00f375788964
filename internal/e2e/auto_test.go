//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// reporting are the ways in which people's scripts say how well they do. Three epochs of
// Keras, or of a loop that any library might be in.
const reporting = `
import json, os, time
how = os.environ["TRIAL_PARAM_HOW"]
values = [0.5, 0.75, 0.9375]
if how.startswith("keras"):
    import keras, numpy as np
    x = np.random.default_rng(0).random((64, 8)).astype("float32")
    y = (x.sum(1) > 4).astype("int32")
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    calls = [keras.callbacks.TensorBoard("logs")] if how == "keras board" else []
    h = model.fit(x, y, validation_split=0.5, batch_size=8, epochs=3, verbose=int(how == "keras bar"), callbacks=calls)
    open("/trial/out/history", "w").write(json.dumps(h.history["val_accuracy"]))
    if how == "keras silent, and its best":
        print("Best val_accuracy: 0.9990")
else:
    print("batch_size=32 device: cpu")
    for epoch, value in enumerate(values, 1):
        if how != "file":
            print(json.dumps({"epoch": epoch, "val_accuracy": value, "lr": 0.1}), flush=True)
        if how == "file":
            with open(os.environ["TRIAL_METRICS_FILE"], "a") as f:
                print(json.dumps({"epoch": epoch, "val_accuracy": value}), file=f)
        time.sleep(0.7)  # Berth stores what it has
    if how == "file at the end":
        with open(os.environ["TRIAL_METRICS_FILE"], "w") as f:
            for epoch, value in enumerate(values, 1):
                print(json.dumps({"epoch": 10 * epoch, "val_accuracy": value - 0.25}), file=f)
    if how == "final at the end":
        with open(os.environ["TRIAL_METRICS_FILE"], "w") as f:
            print(json.dumps({"type": "final", "metrics": {"val_accuracy": 0.25}}), file=f)
`

// A sweep file that names no source takes the metrics of each script from where they are,
// and says where that was. Of two places that have the objective the first one counts.
func TestAuto_ScriptsAsPeopleBringThem(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "4GiB")
	command, err := json.Marshal([]string{"python3", "-c", reporting})
	require.NoError(t, err)

	epochs := []int64{1, 2, 3}
	cases := []struct {
		how, source string
		steps       []int64
		value       float64 // 0 = Keras' own, of its last epoch
		within      float64
	}{
		{"keras bar", "shim", epochs, 0, 1e-9},
		{"keras silent", "shim", epochs, 0, 1e-9},
		{"keras board", "shim", epochs, 0, 1e-9},
		{"lines", "stdout", epochs, 0.9375, 0},
		{"file", "file", epochs, 0.9375, 0},
		{"file at the end", "file", []int64{10, 20, 30}, 0.6875, 0},
		{"final at the end", "file", epochs, 0.25, 0},
		{"keras silent, and its best", "shim", epochs, 0, 1e-9},
	}

	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.how
	}

	values, err := json.Marshal(names)
	require.NoError(t, err)

	id := s.submit(fmt.Sprintf(`{name: auto, image: 'berth-test/keras-tensorboard:1', workdir: /app, command: %s, `+
		`parameters: [{name: how, values: %s}], search: {algorithm: grid}, objective: {metric: val_accuracy}, `+
		`resources: {memory: 1GiB}, probe: {mode: off}}`, command, values))
	sweep := s.until(id, 5*time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	attempts := s.attempts(id)
	require.Len(t, attempts, len(cases))

	for i, c := range cases {
		a := attempts[i]
		require.Equal(t, "ok", a.FailureKind, "%s: %s", c.how, a.Message)
		require.Equal(t, c.source, a.MetricSource, c.how)

		want := c.value
		if want == 0 {
			var history []float64

			data, err := os.ReadFile(filepath.Join(s.dir, "host", "attempts", a.ID, "out", "history"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &history))
			want = history[len(history)-1]
		}

		require.InDelta(t, want, *a.Value, c.within, c.how)

		var steps []int64
		for _, m := range s.curve(a.ID, "val_accuracy") {
			steps = append(steps, m.Step)
		}

		require.Equal(t, c.steps, steps, "%s: one source, and nothing of another", c.how)
	}

	require.Len(t, s.curve(attempts[5].ID, "lr"), 3, "what the file lacks is of what was printed")
	require.Len(t, s.curve(attempts[6].ID, "lr"), 3, "a final record leaves the curves where they are")

	s.requireQuiet()
}
