package datadir

import (
	"math"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFullest(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	none := filepath.Join(dir, "not there")

	var stat syscall.Statfs_t

	require.NoError(t, syscall.Statfs(dir, &stat))

	disk, err := Fullest(dir, none, "")
	require.NoError(t, err)
	require.InEpsilon(t, int64(stat.Bavail)*stat.Bsize, disk.FreeBytes, 0.5, "of the one that is there") //nolint:gosec // G115: no disk has 2^63 bytes
	require.InEpsilon(t, int64(stat.Blocks-stat.Bfree+stat.Bavail)*stat.Bsize, disk.TotalBytes, 0.01)    //nolint:gosec // G115: no disk has 2^63 bytes

	require.Equal(t, disk.TotalBytes, LocalDisk("x", dir).TotalBytes)
	require.Zero(t, LocalDisk("x", none))

	disk, err = Fullest(none)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, disk.FreeBytes, "nothing is known to be short")
	require.Zero(t, disk.TotalBytes)

	_, err = Fullest(filepath.Join(dir, string(make([]byte, 1))))
	require.ErrorContains(t, err, "asking what is free")
}

func TestFreeDisks(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	files, logs, err := FreeDisks(dir, filepath.Join(dir, "not there"))
	require.NoError(t, err)
	require.Positive(t, files)
	require.Less(t, files, int64(math.MaxInt64))
	require.Equal(t, files, logs, "one disk, as far as is known")

	_, _, err = FreeDisks(string(make([]byte, 1)), dir)
	require.Error(t, err)
}
