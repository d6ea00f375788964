package runtrial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestRemoveOutputs(t *testing.T) {
	t.Parallel()

	r := setup(t)
	e := r.Executor
	removal := berth.OutputRemoval{AttemptID: attemptID, TrialID: "trial"}
	mine, others := []string{
		filepath.Join(r.dir, "attempts", attemptID, "out", "model.keras"), filepath.Join(r.dir, "checkpoints", "trial", "epoch1"),
	}, filepath.Join(r.dir, "checkpoints", "other", "epoch1")

	for _, path := range append(mine, others) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}

	ctx, trial := t.Context(), berth.TrialOutputs{TrialID: "trial", AttemptIDs: []string{attemptID, "gone"}}

	all, err := e.MeasureOutputs(ctx)
	require.NoError(t, err)
	require.Equal(t, all, e.OutputBytes(), "it is remembered for the host's report")

	size, err := e.MeasureTrial(ctx, trial)
	require.NoError(t, err)
	require.GreaterOrEqual(t, size, int64(2*entryBytes), "a model and a checkpoint")

	require.NoError(t, e.RemoveOutputs(removal))
	require.NoError(t, e.RemoveOutputs(removal), "what is gone is a success")

	for _, path := range mine {
		require.NoFileExists(t, path)
	}

	require.FileExists(t, others)

	left, err := e.MeasureOutputs(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(2*entryBytes), left, "the other trial's checkpoint and its directory")
	require.GreaterOrEqual(t, all-left, size)

	size, err = e.MeasureTrial(ctx, trial)
	require.NoError(t, err)
	require.Zero(t, size)
}
