package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

			err = refuse(file, self, path, "berth worker")
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
			require.NoError(t, sign(file, self))

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

// A data directory is of one copy of the database. A restored copy has the same installation.
func TestClaim_OfARestoredCopy(t *testing.T) {
	t.Parallel()

	m := machine{dataDir: t.TempDir(), instance: "main"}
	original, copied := berth.Installation{ID: "i-1", Database: "c/1"}, berth.Installation{ID: "i-1", Database: "c/2"}
	path := filepath.Join(m.dataDir, hostCopyFile)

	claim := func(i berth.Installation, known bool) []string {
		t.Helper()

		replaced, err := m.claim(i, known)
		require.NoError(t, err)

		return replaced
	}

	require.Empty(t, claim(original, false), "a new directory")
	require.Empty(t, claim(original, false), "Temporal has lost its store")

	refused := func() {
		t.Helper()

		before, err := os.ReadFile(path)
		if err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}

		_, err = m.claim(copied, false)
		require.Equal(t, berth.KindConflict, berth.KindOf(err))
		require.ErrorContains(t, err, "--instance of its own")
		require.ErrorContains(t, err, "berth adopt-temporal --replace-original")

		after, _ := os.ReadFile(path)
		require.Equal(t, string(before), string(after))
	}
	refused()

	// The version before writes host-owner alone, and must find it as it left it.
	require.NoError(t, os.Remove(path))
	refused()
	require.Empty(t, claim(original, true))
	require.NoError(t, claimDir(m.dataDir, "i-1", "main"))

	text, err := os.ReadFile(filepath.Join(m.dataDir, hostOwnerFile))
	require.NoError(t, err)
	require.Equal(t, "i-1 main\n", string(text))

	// The copy replaces the original: containers of that are its own. And back.
	require.Equal(t, []string{"c/1"}, claim(copied, true))
	require.Equal(t, []string{"c/1"}, claim(copied, false))
	require.Equal(t, []string{"c/2"}, claim(original, true))

	// A person has removed host-owner: the directory is anybody's.
	require.NoError(t, os.Remove(filepath.Join(m.dataDir, hostOwnerFile)))
	require.Empty(t, claim(copied, false))

	hidden := berth.Installation{ID: "i-1"} // by a hosted PostgreSQL
	require.Empty(t, claim(hidden, false))
}

// The data directory of a machine was emptied, or is another, and the database itself knows which
// one it has replaced. A drill has replaced none.
func TestClaim_OfAnEmptiedDirectory(t *testing.T) {
	t.Parallel()

	m := machine{dataDir: t.TempDir(), instance: "main"}
	restored := berth.Installation{ID: "i-1", Database: "c/2", Databases: []string{"c/2", "c/1"}}

	for range 2 {
		replaced, err := m.claim(restored, true)
		require.NoError(t, err)
		require.Equal(t, []string{"c/1"}, replaced)
	}

	drill := machine{dataDir: t.TempDir(), instance: "drill"}
	replaced, err := drill.claim(berth.Installation{ID: "i-1", Database: "c/2", Databases: []string{"c/1"}}, false)
	require.NoError(t, err)
	require.Empty(t, replaced)
}

func TestDoctor_SaysWhenTheDataDirectoryIsOfAnotherInstallation(t *testing.T) {
	t.Parallel()

	store, dir := pgtest.Store(t), t.TempDir()
	aCopy := func(context.Context) (bool, error) { return false, nil }

	require.Empty(t, checkOwner(t.Context(), store, dir, aCopy), "no worker has used it")

	installation, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, claimDir(dir, installation.ID, "main"))

	found := checkOwner(t.Context(), store, dir, aCopy)
	require.Len(t, found, 1)
	require.False(t, found[0].OK, "of a version that did not say")

	require.NoError(t, os.WriteFile(filepath.Join(dir, hostCopyFile), []byte(installation.Database+"\n"), 0o600))

	found = checkOwner(t.Context(), store, dir, aCopy)
	require.Len(t, found, 1)
	require.True(t, found[0].OK)

	require.NoError(t, os.WriteFile(filepath.Join(dir, hostCopyFile), []byte("another/1\n"), 0o600))

	found = checkOwner(t.Context(), store, dir, aCopy)
	require.Len(t, found, 1)
	require.False(t, found[0].OK)
	require.Contains(t, found[0].What, "another copy of this database")

	require.NoError(t, os.Remove(filepath.Join(dir, hostOwnerFile)))
	require.NoError(t, claimDir(dir, "another", "main"))

	found = checkOwner(t.Context(), store, dir, aCopy)
	require.Len(t, found, 1)
	require.False(t, found[0].OK)
	require.Contains(t, found[0].What, "of installation another")
	require.Contains(t, found[0].Next, "restore the database")
}

// What doctor says of a data directory is what a worker does that starts on it.
func TestDoctor_SaysOfADataDirectoryWhatTheWorkerDoes(t *testing.T) {
	t.Parallel()

	store := pgtest.Store(t)
	installation, err := store.Installation(t.Context())
	require.NoError(t, err)

	for name, noted := range map[string]string{
		"its own": installation.Database + "\n", "another copy's": "another/1\n", "replaced": "another/1 " + installation.Database + "\n",
		"its own, after another": installation.Database + " another/1\n", "a version's that noted none": "",
	} {
		for _, original := range []bool{true, false} {
			m := machine{dataDir: t.TempDir(), instance: "main"}
			require.NoError(t, claimDir(m.dataDir, installation.ID, "main"))

			if noted != "" {
				require.NoError(t, os.WriteFile(filepath.Join(m.dataDir, hostCopyFile), []byte(noted), 0o600))
			}

			found := checkOwner(t.Context(), store, m.dataDir, func(context.Context) (bool, error) { return original, nil })
			require.Len(t, found, 1)

			away := checkOwner(t.Context(), store, m.dataDir, func(context.Context) (bool, error) { return false, errors.New("Temporal is away") })
			require.Len(t, away, 1)
			require.True(t, away[0].OK, "nobody knows")

			_, err := m.claim(installation, original)
			require.Equal(t, err == nil, found[0].OK, "%s, original %v: %v, and doctor says: %s", name, original, err, found[0].What)
			require.Equal(t, noted == "" || !strings.HasPrefix(noted, installation.Database), away[0].Warn, name)
		}
	}
}
