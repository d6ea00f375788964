package artifacts_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file of 64 MiB with holes takes no 64 MiB where it is fetched, and reads the same. An
// older and longer one in its place leaves nothing in the holes.
func TestRestore_LeavesHoles(t *testing.T) {
	t.Parallel()

	const size = 64<<20 + 5

	x := setupTrials(t)
	x.writes(map[string]string{"some": "begin", "all": "", "dense": "no hole"})

	dir := filepath.Join(x.files.dir, x.trial)
	some, err := os.OpenFile(filepath.Join(dir, "some"), os.O_WRONLY, 0)
	require.NoError(t, err)

	_, err = some.WriteAt([]byte("middle"), size/2)
	require.NoError(t, err)
	require.NoError(t, some.Truncate(size))
	require.NoError(t, some.Close())
	require.NoError(t, os.Truncate(filepath.Join(dir, "all"), 1<<20))

	x.fails()
	x.looks()

	id, to := x.next().Stored.ID, t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(to, "all"), make([]byte, 2<<20), 0o600))
	require.NoError(t, x.restore(t.Context(), id, to))
	require.True(t, contentOf(t, dir)["some"] == contentOf(t, to)["some"], "64 MiB differ") //nolint:testifylint // no diff of 64 MiB
	require.Equal(t, contentOf(t, dir)["all"], contentOf(t, to)["all"])
	require.Equal(t, "no hole", contentOf(t, to)["dense"])

	for _, name := range []string{"some", "all"} {
		info, err := os.Stat(filepath.Join(to, name))
		require.NoError(t, err)

		stat, ok := info.Sys().(*syscall.Stat_t)
		require.True(t, ok)
		require.Less(t, stat.Blocks*512, int64(1<<19), name)
	}
}

// Hard links come as separate files.
func TestRestore_HardLinksAreSeparateFiles(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"a": "1"})

	dir := filepath.Join(x.files.dir, x.trial)
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	x.fails()
	x.looks()

	to := t.TempDir()
	require.NoError(t, x.restore(t.Context(), x.next().Stored.ID, to))
	require.Equal(t, map[string]string{"a": "1", "b": "1"}, contentOf(t, to))

	a, err := os.Stat(filepath.Join(to, "a"))
	require.NoError(t, err)

	b, err := os.Stat(filepath.Join(to, "b"))
	require.NoError(t, err)
	require.False(t, os.SameFile(a, b))
}
