package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// Two processes on one data directory refuse each other, each kind its own.
func TestLock(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "data")

	unlock, err := Lock(dir, WorkerLock, "berth worker")
	require.NoError(t, err)

	_, err = Lock(dir, WorkerLock, "berth worker")
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	require.ErrorContains(t, err, "another `berth worker` uses "+dir+": stop it, or give another --data-dir")

	unlockDev, err := Lock(dir, DevLock, "berth dev")
	require.NoError(t, err, "a worker runs beside `berth dev --no-worker`")
	unlockDev()

	unlock()

	unlock, err = Lock(dir, WorkerLock, "berth worker")
	require.NoError(t, err)
	unlock()
}

func TestClaim(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, Claim(dir, "i-1", "main"))
	require.NoError(t, Claim(dir, "i-1", "main"))

	for _, other := range [][2]string{{"i-1", "test"}, {"i-2", "main"}} {
		err := Claim(dir, other[0], other[1])
		require.Equal(t, berth.KindConflict, berth.KindOf(err))
		require.ErrorContains(t, err, `"i-1 main"`)
		require.ErrorContains(t, err, "give another --data-dir")
	}
}

func TestFindings_OfAnotherInstallation(t *testing.T) {
	t.Parallel()

	store, dir := pgtest.Store(t), t.TempDir()

	require.Empty(t, Findings(t.Context(), store, dir), "no worker has used it")

	installation, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, Claim(dir, installation.ID, "main"))

	found := Findings(t.Context(), store, dir)
	require.Len(t, found, 1)
	require.True(t, found[0].OK)

	require.NoError(t, os.Remove(filepath.Join(dir, OwnerFile)))
	require.NoError(t, Claim(dir, "another", "main"))

	found = Findings(t.Context(), store, dir)
	require.Len(t, found, 1)
	require.False(t, found[0].OK)
	require.Contains(t, found[0].What, "of installation another")
	require.Contains(t, found[0].Next, "restore the database")
}
