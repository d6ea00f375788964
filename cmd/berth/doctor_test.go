package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/cgroup"
	"github.com/berthml/berth/internal/health"
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

// A worker that can measure nothing would probe one trial after another for ever.
func TestWorker_DoesNotStartWhereItCanMeasureNothing(t *testing.T) {
	t.Parallel()

	_, err := (&machine{instance: "main"}).runtime(t.Context(), seenFrom(t, "0::/../../init.scope"), berth.Host{}, berth.Owner{}, connections{}, nil, nil)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "cgroup: host")
}

// A disk that will be full before long is reported with the next step, and fails
// nothing.
func TestDoctor_WarnsBeforeADiskIsFull(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	var out strings.Builder

	require.Zero(t, printFindings(&out, []health.Finding{
		checkDisk(health.Disk{TotalBytes: 100 * gib, FreeBytes: 50 * gib}, "/data", nil),
		checkDisk(health.Disk{TotalBytes: 100 * gib, FreeBytes: 10 * gib}, "/data", nil),
	}))
	require.Contains(t, out.String(), "ok   disk: 51,200 MiB free\n")
	require.Contains(t, out.String(), "SOON disk: this machine has 8,192 MiB left: 91 % of what it may fill is in use\n     → delete sweeps")
	require.Contains(t, out.String(), "--keep-outputs-size")

	require.Equal(t, 1, printFindings(&out, []health.Finding{checkDisk(health.Disk{TotalBytes: 100 * gib, FreeBytes: gib}, "/data", nil)}))
	require.Contains(t, out.String(), "FIX  disk: 1,024 MiB free, and a worker keeps 2,048 MiB\n")
}

// Before its first worker a machine has no data directory, and in a container
// Docker's is invisible: the disk is the one where the directory will be.
func TestDoctor_LooksAtTheDiskWhereTheDataWillBe(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.Equal(t, dir, nearestDir(filepath.Join(dir, "not", "made")))

	disk, err := fullestOf(nearestDir(filepath.Join(dir, "not", "made")), filepath.Join(dir, "nor-docker"))
	require.NoError(t, err)
	require.Positive(t, disk.TotalBytes)
	require.Greater(t, disk.TotalBytes, disk.FreeBytes)
}
