package main

import (
	"math"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeastFree(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	none := filepath.Join(dir, "not there")

	var stat syscall.Statfs_t

	require.NoError(t, syscall.Statfs(dir, &stat))

	free, err := leastFree(dir, none, "")
	require.NoError(t, err)
	require.InEpsilon(t, int64(stat.Bavail)*stat.Bsize, free, 0.5, "of the one that is there") //nolint:gosec // G115: no disk has 2^63 bytes

	free, err = leastFree(none)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, free, "nothing is known to be short")

	_, err = leastFree(filepath.Join(dir, string(make([]byte, 1))))
	require.ErrorContains(t, err, "asking what is free")
}
