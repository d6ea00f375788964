package runtrial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// adopts has the executor note that a container of the trial has its checkpoint in dir, and
// forget it as a worker does that starts anew.
func (x *second) adopts(t *testing.T, dir string) {
	t.Helper()

	run := x.open(x.order(), x.who(t))
	run.container.Mounts = []berth.Mount{{Source: dir, Target: mountCheckpoint}}
	run.noteContainer(berth.Launch{})
	x.elsewhere.Clear()
}

func requireFile(t *testing.T, path, content string) {
	t.Helper()

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, string(text))
}

// The data directory was copied to a larger disk, and the worker started anew with it, while an
// attempt ran, whose container has the old directory. The next attempt on this host goes on from
// what that one left, and not from the copy, which is older.
func TestRun_GoesOnFromWhereTheLastContainerWrote(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, nil)
	x.knows(berth.EarlierCheckpoint{AttemptID: "1", Number: 1, HostID: hostID, Host: "a", Ran: true, Left: true})
	x.writes(t, "state", "epoch 3, when it was copied")

	before := filepath.Join(t.TempDir(), "checkpoints", "trial")
	require.NoError(t, os.MkdirAll(before, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(before, "state"), []byte("epoch 40"), 0o600))
	x.adopts(t, before)

	ended := x.start(t.Context(), x.order())
	box := x.docks.started(t)

	var has string

	for _, m := range x.docks.launches()[0].Mounts {
		if m.Target == mountCheckpoint {
			has = m.Source
		}
	}

	box.Exit(0)
	require.NoError(t, await(t, ended).err)
	require.Equal(t, "from the checkpoint of attempt 1 on this host, a", x.resumed(t))

	requireFile(t, filepath.Join(has, "state"), "epoch 40")

	require.NoError(t, x.RemoveOutputs(berth.OutputRemoval{AttemptID: attemptID, TrialID: "trial"}))
	require.NoDirExists(t, before)
	require.NoDirExists(t, x.checkpoint())
}

// Meanwhile an attempt on another host went on. What it left is fetched to this data directory,
// and counts from then on. The old one stays as it is.
func TestRun_FetchesToItsOwnDataDirectory(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, writes("state", "of another host"))
	x.writes(t, "state", "epoch 3, when it was copied")

	before := filepath.Join(t.TempDir(), "checkpoints", "trial")
	require.NoError(t, os.MkdirAll(before, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(before, "state"), []byte("epoch 40"), 0o600))
	x.adopts(t, before)

	ended := x.start(t.Context(), x.order())
	box := x.docks.started(t)
	require.Equal(t, map[string]string{"state": "of another host"}, x.has(t))
	require.Equal(t, fromB, x.resumed(t))
	requireFile(t, filepath.Join(before, "state"), "epoch 40")
	require.Equal(t, x.checkpoint(), x.open(x.order(), x.who(t)).dirs.checkpoint)
	box.Exit(0)
	require.NoError(t, await(t, ended).err)
}

// The old disk was removed: the copy is what there is.
func TestRun_GoesOnFromTheCopyWhenTheOldDirectoryIsGone(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, nil)
	x.knows(berth.EarlierCheckpoint{AttemptID: "1", Number: 1, HostID: hostID, Host: "a", Ran: true, Left: true})
	x.writes(t, "state", "epoch 3, when it was copied")

	before := t.TempDir()
	x.adopts(t, before)
	require.NoError(t, os.RemoveAll(before))

	ended := x.start(t.Context(), x.order())
	x.docks.started(t).Exit(0)
	require.NoError(t, await(t, ended).err)
	require.Equal(t, "from the checkpoint of attempt 1 on this host, a", x.resumed(t))
	require.Equal(t, map[string]string{"state": "epoch 3, when it was copied"}, x.has(t))
}
