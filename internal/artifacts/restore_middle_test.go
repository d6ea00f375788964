package artifacts_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// One large file, and a link that breaks once an hour: a fetch that restarts the file each time never
// ends, and after the second try the attempt starts without a checkpoint. Restore goes on in the
// middle of the file (artifacts.md).
func TestRestore_GoesOnInTheMiddleOfAFile(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)

	large := make([]byte, 32<<20)
	for n := range large {
		large[n] = byte(n*7 + n>>13)
	}

	x.writes(map[string]string{"model.safetensors": string(large)})
	x.fails()
	x.looks()

	e := x.next()
	require.NotNil(t, e.Stored)

	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })

	ctx, cut := context.WithCancel(t.Context())
	err = x.store.Restore(ctx, x.db, e.Stored.ID, root, func(bytes int64) {
		if bytes >= 24<<20 {
			cut()
		}
	})
	require.ErrorIs(t, err, context.Canceled)

	var first int64

	require.NoError(t, x.store.Restore(t.Context(), x.db, e.Stored.ID, root, func(bytes int64) {
		if first == 0 {
			first = bytes
		}
	}))
	require.GreaterOrEqual(t, first, int64(16<<20), "it begins at the first byte again")
	require.True(t, contentOf(t, dir)["model.safetensors"] == string(large), "32 MiB differ") //nolint:testifylint // no diff of 32 MiB
}

// The power failed while a file was fetched, and its first blocks are zeroes instead of data.
// Restore checks the SHA-256 of the whole file, so it fetches the file again at once, and no hole
// shows the old content behind it.
func TestRestore_BeginsAFileAnewThatIsNotWhatWasSent(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	content := string(make([]byte, 1<<20)) + "middle" + string(make([]byte, 1<<20)) + "end"
	x.writes(map[string]string{"state": content})
	x.fails()
	x.looks()

	dir, id := t.TempDir(), x.next().Stored.ID

	for name, left := range map[string]string{"zeroes": string(make([]byte, 1<<20+1<<19)), "others": "x" + content[1:1<<20], "longer": content + "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "state"), []byte(left), 0o600))
		require.NoError(t, x.restore(t.Context(), id, dir), name)
		require.True(t, contentOf(t, dir)["state"] == content, name) //nolint:testifylint // no diff of 2 MiB
	}
}
