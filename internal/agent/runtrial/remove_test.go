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
		filepath.Join(r.dir, "checkpoints", "trial.stages", "base", "epoch1"),
	}, filepath.Join(r.dir, "checkpoints", "other", "epoch1")

	for _, path := range append(mine, others) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}

	sizes, err := e.MeasureOutputs(t.Context())
	require.NoError(t, err)
	require.Equal(t, sizes[attemptID]+sizes["trial"]+sizes["other"], e.OutputBytes(), "it is remembered for the host's report")
	require.GreaterOrEqual(t, sizes[attemptID], int64(3*entryBytes), "a model in a directory of the attempt's")
	require.Equal(t, int64(5*entryBytes), sizes["trial"], "a checkpoint in the trial's directory, and one of a stage")

	require.NoError(t, e.RemoveOutputs(removal))
	require.NoError(t, e.RemoveOutputs(removal), "what is gone is a success")

	for _, path := range mine {
		require.NoFileExists(t, path)
	}

	require.FileExists(t, others)

	sizes, err = e.MeasureOutputs(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"other": 2 * entryBytes}, sizes, "the other trial's checkpoint and its directory")
	require.Equal(t, int64(2*entryBytes), e.OutputBytes())
}

// An attempt's directory that stays does not keep the checkpoints from going.
func TestRemoveOutputs_GoesOnBesideWhatIsStuck(t *testing.T) {
	t.Parallel()

	r := setup(t)
	checkpoint := filepath.Join(r.dir, "checkpoints", "trial")
	require.NoError(t, os.MkdirAll(checkpoint, 0o750))
	require.NoError(t, os.MkdirAll(filepath.Join(r.dir, "attempts"), 0o750))

	stuck := "a name that no file can have\x00" // so that removing it fails for root, too
	require.Error(t, r.RemoveOutputs(berth.OutputRemoval{AttemptID: stuck, TrialID: "trial"}))
	require.NoDirExists(t, checkpoint)
}
