package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// Two processes on one data directory refuse each other, each kind its own.
func TestLockDir(t *testing.T) {
	t.Parallel()

	dir, log := filepath.Join(t.TempDir(), "data"), slog.New(slog.DiscardHandler)

	unlock, err := lockDir(dir, workerLock, "berth worker", log)
	require.NoError(t, err)

	_, err = lockDir(dir, workerLock, "berth worker", log)
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	require.ErrorContains(t, err, "another `berth worker` uses "+dir+": stop it, or give another --data-dir")

	unlockDev, err := lockDir(dir, devLock, "berth dev", log)
	require.NoError(t, err, "a worker runs beside `berth dev --no-worker`")
	unlockDev()

	unlock()

	unlock, err = lockDir(dir, workerLock, "berth worker", log)
	require.NoError(t, err)
	unlock()
}

// A network file system may keep locks on each machine alone: then the file
// itself says that another machine is at it.
func TestLockDir_AnotherMachine(t *testing.T) {
	t.Parallel()

	self := thisProcess()
	self.MachineID = "m-1"

	for name, test := range map[string]struct {
		left    holder
		text    string
		refused bool
	}{
		"never used":                      {text: ""},
		"of an older version":             {text: "4711\n"},
		"killed here in this boot":        {left: holder{BootID: self.BootID, MachineID: "m-1"}},
		"a container of this kernel":      {left: holder{BootID: self.BootID, MachineID: "m-2"}},
		"this machine lost its power":     {left: holder{BootID: "earlier", MachineID: "m-1"}},
		"a machine of which we know none": {left: holder{BootID: "other"}},
		"another machine":                 {left: holder{BootID: "other", MachineID: "m-2", Host: "gpu-2", PID: 12}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), workerLock)
			text := []byte(test.text)

			if test.left.BootID != "" {
				var err error
				text, err = json.Marshal(test.left)
				require.NoError(t, err)
			}

			require.NoError(t, os.WriteFile(path, text, 0o600))

			file, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)

			defer file.Close() //nolint:errcheck // read below

			err = lockConflict(file, self, path, "berth worker")
			got, read := os.ReadFile(path)
			require.NoError(t, read)

			if test.refused {
				require.Equal(t, berth.KindConflict, berth.KindOf(err))
				require.ErrorContains(t, err, `machine "gpu-2" (process 12)`)
				require.ErrorContains(t, err, "remove "+path)
				require.Equal(t, string(text), string(got), "it stays the other's")

				return
			}

			require.NoError(t, err)
			require.NoError(t, writeHolder(file, self))

			var now holder

			got, err = os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(got, &now))
			require.Equal(t, self, now)
		})
	}
}

func TestClaimDir(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, claimDir(dir, "i-1", "main"))
	require.NoError(t, claimDir(dir, "i-1", "main"))

	for _, other := range [][2]string{{"i-1", "test"}, {"i-2", "main"}} {
		err := claimDir(dir, other[0], other[1])
		require.Equal(t, berth.KindConflict, berth.KindOf(err))
		require.ErrorContains(t, err, `"i-1 main"`)
		require.ErrorContains(t, err, "give another --data-dir")
	}
}

func TestDoctor_SaysWhenTheDataDirectoryIsOfAnotherInstallation(t *testing.T) {
	t.Parallel()

	store, dir := pgtest.Store(t), t.TempDir()

	require.Empty(t, checkOwner(t.Context(), store, dir), "no worker has used it")

	installation, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, claimDir(dir, installation.ID, "main"))

	found := checkOwner(t.Context(), store, dir)
	require.Len(t, found, 1)
	require.True(t, found[0].OK)

	require.NoError(t, os.Remove(filepath.Join(dir, hostOwnerFile)))
	require.NoError(t, claimDir(dir, "another", "main"))

	found = checkOwner(t.Context(), store, dir)
	require.Len(t, found, 1)
	require.False(t, found[0].OK)
	require.Contains(t, found[0].What, "of installation another")
	require.Contains(t, found[0].Next, "restore the database")
}
