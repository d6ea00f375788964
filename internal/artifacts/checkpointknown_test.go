package artifacts

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The data directory is on NFS, and its server's clock differs from the worker's (or the worker's clock is
// corrected). The bubble's clock is the worker's, the files' clock the server's.
func TestQuiet_IsToldByWhatChangesNotByTheClock(t *testing.T) {
	t.Parallel()

	for name, worker := range map[string]time.Duration{"the server is ahead": 0, "the server is behind": 100 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "model"), []byte("epoch 1"), 0o600))

			synctest.Test(t, func(t *testing.T) {
				time.Sleep(worker)

				root, err := os.OpenRoot(dir)
				require.NoError(t, err)

				defer root.Close() //nolint:errcheck // a test's

				c := &Checkpointer{}
				of := berth.AttemptCheckpoint{AttemptID: "a"}

				_, err = c.read(t.Context(), of, root, quietFor)
				require.ErrorIs(t, err, errNotQuiet, "nobody saw it at rest yet")

				time.Sleep(quietFor)
				require.NoError(t, os.WriteFile(filepath.Join(dir, "model"), []byte("epoch two"), 0o600))

				_, err = c.read(t.Context(), of, root, quietFor)
				require.ErrorIs(t, err, errNotQuiet, "written this moment: the optimizer follows")

				time.Sleep(quietFor - time.Nanosecond)

				_, err = c.read(t.Context(), of, root, quietFor)
				require.ErrorIs(t, err, errNotQuiet)

				time.Sleep(time.Nanosecond)

				items, err := c.read(t.Context(), of, root, quietFor)
				require.NoError(t, err, "two looks found the same")
				require.NotEmpty(t, items)
			})
		})
	}
}

// Files beyond the limit of open files are opened at their turn: a replaced one counts as
// changed, and an open one does not.
func TestHold_HoldsNoMoreThanItMay(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	var sources []found

	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))

		info, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)

		sources = append(sources, found{path: name, info: info})
	}

	root, err := os.OpenRoot(dir)
	require.NoError(t, err)

	defer root.Close() //nolint:errcheck // a test's

	release, err := holdOpen(root, sources, 1)
	require.NoError(t, err)

	defer release()

	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), []byte("new"), 0o600))
		require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)))
	}

	require.NotNil(t, sources[0].held)

	text := make([]byte, 3)
	_, err = sources[0].held.Read(text)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.Nil(t, sources[1].held)

	_, err = sources[1].open(root)
	require.ErrorIs(t, err, ErrChanged)
}
