package runtrial

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The attempt that a host takes back may be another kind of run than the one
// the trial asked for meanwhile. Its launch says what its container does.
func TestRun_TheLaunchSaysWhetherItIsAShortProbe(t *testing.T) {
	t.Parallel()

	bubble(t, "a run in full goes on", func(t *testing.T) {
		r := setup(t)
		r.seldom()
		box := r.leave(t, r.order())
		r.writeCheckpoint(t, "model")
		require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), "plot"), nil, 0o600))

		order := r.order()
		order.Short = true
		ended := r.start(t.Context(), order)

		time.Sleep(time.Hour) // no probe may run so long
		require.Equal(t, berth.ContainerRunning, box.Container().State)
		got := ends(t, box, ended, "acc=1\n", 0)
		require.Equal(t, berth.FailureOK, got.Kind)
		require.InDelta(t, 1, *got.Value, 0)
		require.Equal(t, berth.FootprintFull, r.books.result(t).Source)
		require.FileExists(t, filepath.Join(r.file("out"), "plot"))
		require.FileExists(t, filepath.Join(r.checkpoints(), "model"))
	})

	t.Run("a short probe is no result", func(t *testing.T) {
		t.Parallel()

		r := setup(t)
		order := r.order()
		order.Short = true
		box := r.leave(t, order)
		got := ends(t, box, r.start(t.Context(), r.order()), "acc=1\n", 0)
		require.Equal(t, berth.FailurePreempted, got.Kind, "it runs again, and nothing is charged")
		require.Nil(t, got.Value)
		require.Equal(t, berth.FootprintShort, r.books.result(t).Source)
		require.NoDirExists(t, filepath.Join(r.dir, "attempts", attemptID))
	})
}
