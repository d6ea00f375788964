package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// seenFrom is a machine whose process 1 has this line in its cgroup file.
func seenFrom(t *testing.T, line string) cgroup.FS {
	t.Helper()

	proc := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(proc, "1"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "1", "cgroup"), []byte(line+"\n"), 0o600))

	return cgroup.FS{Proc: proc, Cgroup: t.TempDir()}
}

func TestDoctor_SaysWhichCgroupNamespaceIsNeeded(t *testing.T) {
	t.Parallel()

	require.True(t, checkCgroups(seenFrom(t, "0::/init.scope")).OK)

	f := checkCgroups(seenFrom(t, "0::/../../init.scope"))
	require.False(t, f.OK)
	require.Contains(t, f.Next, "cgroup: host")
}

// A disk that will be full before long is reported with the next step, and fails
// nothing.
func TestDoctor_WarnsBeforeADiskIsFull(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	var out strings.Builder

	require.Zero(t, Print(&out, []health.Finding{
		checkDisk(health.Disk{TotalBytes: 100 * gib, FreeBytes: 50 * gib}, "/data", nil),
		checkDisk(health.Disk{TotalBytes: 100 * gib, FreeBytes: 10 * gib}, "/data", nil),
	}))
	require.Contains(t, out.String(), "ok   disk: 51,200 MiB free\n")
	require.Contains(t, out.String(), "SOON disk: this machine has 8,192 MiB left: 91 % of what it may fill is in use\n     → delete sweeps")
	require.Contains(t, out.String(), "--keep-outputs-size")

	require.Equal(t, 1, Print(&out, []health.Finding{checkDisk(health.Disk{TotalBytes: 100 * gib, FreeBytes: gib}, "/data", nil)}))
	require.Contains(t, out.String(), "FIX  disk: 1,024 MiB free, and a worker keeps 2,048 MiB\n")
}

// Before its first worker a machine has no data directory, and in a container
// Docker's is invisible: the disk is the one where the directory will be.
func TestDoctor_LooksAtTheDiskWhereTheDataWillBe(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.Equal(t, dir, nearestDir(filepath.Join(dir, "not", "made")))

	disk, err := datadir.Fullest(nearestDir(filepath.Join(dir, "not", "made")), filepath.Join(dir, "nor-docker"))
	require.NoError(t, err)
	require.Positive(t, disk.TotalBytes)
	require.Greater(t, disk.TotalBytes, disk.FreeBytes)
}

// Before a team begins to use a store, an administrator checks it from a machine whose
// BERTH_POSTGRES_URL is another Berth's.
func TestCheckArtifacts_OnlyLooks(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "store")
	staging := pgtest.Store(t)
	found := checkArtifacts(t.Context(), dir, staging)
	require.True(t, found.OK, found.What)
	require.NoDirExists(t, dir)

	require.NoError(t, os.Mkdir(dir, 0o750))

	found = checkArtifacts(t.Context(), dir, staging)
	require.True(t, found.OK, found.What)
	require.Contains(t, found.What, "is new")

	store, err := artifacts.Open(t.Context(), dir, "production", pgtest.Store(t))
	require.NoError(t, err)
	require.NoError(t, store.Ready(t.Context()))
	require.NoError(t, store.Close())

	found = checkArtifacts(t.Context(), dir, staging)
	require.False(t, found.OK)
	require.Contains(t, found.What+found.Next, "belongs to another Berth (production)")
}
