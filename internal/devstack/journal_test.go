//go:build integration

package devstack

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// Temporal's commits before a Sync outlive a power cut, which leaves only
// synced data on a disk.
func TestTemporal_SyncOutlivesAPowerCut(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	disk, image := filepath.Join(dir, "disk"), filepath.Join(dir, "disk.img")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 256<<20))

	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		runtimetest.Skip(t, "a disk of our own needs mkfs.ext4: %s: %s", err, out)
	}

	mountImage(t, image, disk)

	before, err := StartTemporal(TemporalConfig{Dir: filepath.Join(disk, "temporal"), Headless: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, before.Stop()) })

	begin(t, before, "durable")
	require.NoError(t, before.Sync())

	cut := filepath.Join(dir, "cut.img")
	copyFile(t, image, cut)
	mountImage(t, cut, filepath.Join(dir, "cut"))

	after, err := StartTemporal(TemporalConfig{Dir: filepath.Join(dir, "cut", "temporal"), Headless: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, after.Stop()) })

	got, err := dial(t, after).DescribeWorkflowExecution(t.Context(), "durable", "")
	require.NoError(t, err)
	require.Equal(t, "durable", got.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId())
}

// A failed sync of a journal is reported, and a Temporal in memory has no
// journal.
func TestTemporal_Sync(t *testing.T) {
	t.Parallel()

	temporal := &Temporal{}
	require.NoError(t, temporal.Sync())

	temporal.database = filepath.Join(t.TempDir(), "temporal.db")
	require.NoError(t, temporal.Sync(), "nothing was written yet")

	require.NoError(t, os.Symlink("/dev/null", temporal.database+"-wal")) // it takes no sync
	require.ErrorContains(t, temporal.Sync(), "syncing Temporal's journal")
	require.ErrorIs(t, temporal.Sync(), syscall.EINVAL)
}

func mountImage(t *testing.T, image, at string) {
	t.Helper()
	require.NoError(t, os.Mkdir(at, 0o750))

	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		runtimetest.Skip(t, "a disk of our own needs root and a loop device: %s: %s", err, out)
	}

	t.Cleanup(func() { require.NoError(t, syscall.Unmount(at, 0)) })
}

// copyFile copies a file.
func copyFile(t *testing.T, from, to string) {
	t.Helper()

	in, err := os.Open(filepath.Clean(from))
	require.NoError(t, err)

	defer in.Close() //nolint:errcheck // it was only read

	out, err := os.Create(filepath.Clean(to))
	require.NoError(t, err)

	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

func dial(t *testing.T, server *Temporal) client.Client {
	t.Helper()

	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: server.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	return c
}

// begin starts a workflow that no worker serves.
func begin(t *testing.T, server *Temporal, id string) {
	t.Helper()

	c := dial(t, server)

	require.Eventually(t, func() bool { // the namespace appears a moment after the server answers
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "none"}, "Nothing")

		return err == nil
	}, time.Minute, 50*time.Millisecond)
}
