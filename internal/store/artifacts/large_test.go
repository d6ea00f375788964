//go:build integration

package artifacts_test

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A model of 2 GiB beside 1,000 small files: killed while it is sent, then sent
// whole. The process that sends it needs little memory.
func TestUploader_SendsLargeFiles(t *testing.T) { //nolint:paralleltest // 4 GiB of disk
	b := setup(t)
	content := thousand()
	trial, attempt := b.ended(content)
	_, err := b.db.GetFile(t.Context(), attempt, "nothing")
	require.Error(t, err)

	const bytes = 2 << 30

	large, err := os.Create(filepath.Join(b.files.out(attempt), "model.bin"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(bytes)) // sparse
	_, err = large.WriteAt([]byte("the end"), bytes-7)
	require.NoError(t, err)
	require.NoError(t, large.Sync())

	_, err = large.Seek(0, io.SeekStart)
	require.NoError(t, err)

	sum := sha256.New()
	_, err = io.Copy(sum, large)
	require.NoError(t, err)
	require.NoError(t, large.Close())

	digest := berth.Digest(sum.Sum(nil))
	cmd := b.startChild()

	require.Eventually(t, func() bool {
		parts, _ := filepath.Glob(filepath.Join(b.storeDir, "sha256", digest.String()[:2], digest.String()+".*.tmp"))
		if len(parts) == 0 {
			return false
		}

		info, err := os.Stat(parts[0])

		return err == nil && info.Size() > bytes/4
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NotContains(t, b.objects(), digest.String(), "half of it is not seen")

	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(t, ok)
	require.Less(t, usage.Maxrss, int64(256<<10), "KiB of memory")

	b.look(t.Context())

	set := b.set(trial)
	require.Equal(t, berth.FilesStored, set.State)
	require.Equal(t, 1001, set.Files)

	file, err := b.db.GetFile(t.Context(), attempt, "model.bin")
	require.NoError(t, err)
	require.Equal(t, digest, file.Digest)

	r, err := b.store.Read(t.Context(), digest, 0, -1)
	require.NoError(t, err)

	sum.Reset()
	n, err := io.Copy(sum, r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, int64(bytes), n)
	require.Equal(t, digest, berth.Digest(sum.Sum(nil)))

	b.age()
	require.Equal(t, 1, b.clean(), "the half that was left")
	require.Len(t, b.objects(), 1001)

	for _, name := range b.objects() {
		require.False(t, strings.HasSuffix(name, ".tmp"))
	}
}
