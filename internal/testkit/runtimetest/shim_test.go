//go:build integration

package runtimetest_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/testkit/fake"
)

// resumable is plain Keras as its guide has it: BackupAndRestore, and nothing for
// Berth.
const resumable = `
import time
import keras, numpy as np
x = np.random.default_rng(0).random((64, 8)).astype("float32")
y = (x.sum(1) > 4).astype("int32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.2)
backup = keras.callbacks.BackupAndRestore("/trial/checkpoint/backup")
model.fit(x, y, validation_split=0.5, batch_size=8, epochs=8, verbose=0, callbacks=[backup, Slow()])
print("trained to the end")
`

// attempts run one trial of real Keras on real Docker, with a ledger in memory.
type attempts struct {
	*runtrial.Executor

	ledger  *fake.Ledger
	docker  *docker.Docker
	dataDir string
	dataset string // where all data sets are
}

const keras = "berth-examples/digits:1"

func newAttempts(t *testing.T, shim *bool, change ...func(*berth.Spec)) *attempts {
	t.Helper()

	return newAttemptsOf(t, keras, 2, shim, change...)
}

// newAttemptsOf is newAttempts of an image, on a machine with this many CPUs.
func newAttemptsOf(t *testing.T, image string, cpus int, shim *bool, change ...func(*berth.Spec)) *attempts {
	t.Helper()

	d, err := docker.New(docker.Config{Instance: "shim-" + uuid.NewString()[:8], Owner: berth.Owner{HostID: "host"}, BootID: "boot", CPUs: cpus})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	resolved, err := d.ResolveImage(t.Context(), image)
	require.NoError(t, err, "make images")

	a := &attempts{ledger: fake.NewLedger(nil), docker: d}
	require.NoError(t, a.ledger.RegisterHost(t.Context(), berth.Host{ID: "host", Name: "host", CPUMilli: 64_000, MemoryBytes: 64 << 30}, ""))

	spec := berth.Spec{
		Command: []string{"python3", "-c", resumable}, Workdir: "/app", Shim: shim,
		Metrics:   berth.MetricsSpec{Source: berth.MetricsAuto},
		Objective: &berth.Objective{Metric: "val_accuracy", Goal: berth.GoalMaximize, Strategy: berth.StrategyLast},
		Resources: berth.Resources{ShmSize: 64 << 20},
	}
	for _, c := range change {
		c(&spec)
	}

	a.ledger.AddTrial(fake.Trial{
		ImageDigest: resolved.ID, Trial: berth.Trial{ID: "trial", SweepID: "sweep", Number: 1, ShapeKey: "shape"}, Spec: spec,
	})

	dir, err := os.MkdirTemp("", "berth-shim-") //nolint:usetesting // who is not root cannot remove what the trial made, and the test must not fail for that
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	unmeasured := func(berth.Container) (runtrial.Meter, error) {
		return nil, berth.Errorf(berth.KindNotFound, "nobody measures here")
	}
	a.dataDir = filepath.Join(dir, "host")
	a.Executor = runtrial.New(d, a.ledger, unmeasured, runtrial.Config{
		DataDir: a.dataDir, BootID: "boot", Workdir: d.ReadWorkdir,
		Dataset: func(string) (path, version string, found bool) { return a.dataset, "v", a.dataset != "" },
	}, slog.New(slog.DiscardHandler))

	return a
}

// run runs the next attempt to its end. Once it has reported this many epochs,
// run calls meanwhile with its container.
func (a *attempts) run(t *testing.T, number, epochs int, meanwhile func(container string)) (id string, outcome berth.Outcome) {
	t.Helper()

	id = uuid.NewString()
	demand := berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 1000}
	_, err := a.ledger.RequestPlacement(t.Context(), berth.PlacementRequest{
		AttemptID: id, SweepID: "sweep", TrialID: "trial", WorkflowID: "w", Number: number, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "shape", Demand: demand,
	})
	require.NoError(t, err)

	_, err = a.ledger.Place(t.Context(), map[string]berth.Placement{id: {HostID: "host", Demand: demand}})
	require.NoError(t, err)

	status, err := a.ledger.PlacementStatus(t.Context(), id)
	require.NoError(t, err)

	type answer struct {
		outcome berth.Outcome
		err     error
	}

	ended := make(chan answer, 1)

	go func() {
		outcome, err := a.Run(context.WithoutCancel(t.Context()), berth.Order{AttemptID: id, Token: status.Token})
		ended <- answer{outcome, err}
	}()

	if meanwhile != nil {
		require.Eventually(t, func() bool { return len(a.curve(t, id)) >= epochs }, 5*time.Minute, 50*time.Millisecond)
		meanwhile(a.docker.Name(id))
	}

	got := <-ended
	require.NoError(t, got.err)

	return id, got.outcome
}

func (a *attempts) curve(t *testing.T, id string) []berth.MetricPoint {
	t.Helper()

	points, err := a.ledger.ListMetrics(t.Context(), id, "val_accuracy", 1000)
	require.NoError(t, err)

	return points
}

// An unchanged Keras script ends after SIGTERM between two batches with exit
// code 75 and no result. The next attempt goes on from its backup, and the last
// epoch is the trial's value.
func TestShim_StopAndResume(t *testing.T) {
	t.Parallel()

	a := newAttempts(t, nil)
	first, stopped := a.run(t, 1, 2, func(container string) {
		require.NoError(t, a.docker.Stop(t.Context(), container, 30*time.Second))
	})
	require.Equal(t, berth.FailurePreempted, stopped.Kind, stopped.Message)
	require.Equal(t, 75, *stopped.ExitCode)
	require.Nil(t, stopped.Value, "what is half trained is no result")

	second, resumed := a.run(t, 2, 0, nil)
	require.Equal(t, berth.FailureOK, resumed.Kind, resumed.Message)

	before, after := a.curve(t, first), a.curve(t, second)
	require.Less(t, len(before), 8)
	require.Len(t, after, 8-len(before), "no epoch twice, and none left out")
	require.EqualValues(t, len(before)+1, after[0].Step)
	require.EqualValues(t, 8, after[len(after)-1].Step)
	require.InDelta(t, after[len(after)-1].Value, *resumed.Value, 0)
}

// The same script without the shim reports nothing.
func TestShim_False(t *testing.T) {
	t.Parallel()

	off := false
	a := newAttempts(t, &off)
	id, outcome := a.run(t, 1, 0, nil)
	require.Equal(t, berth.FailureNoResult, outcome.Kind, outcome.Message)
	require.Empty(t, a.curve(t, id))
}
