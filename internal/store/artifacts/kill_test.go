package artifacts_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

// Environment of a child process, which is the test binary again.
const (
	childURL   = "ARTIFACTS_TEST_URL"
	childStore = "ARTIFACTS_TEST_STORE"
	childFiles = "ARTIFACTS_TEST_FILES"
	childHost  = "ARTIFACTS_TEST_HOST"
)

// child stores files until it is killed.
func child() {
	ctx := context.Background()

	db, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv(childURL)})
	if err == nil {
		var store *artifacts.Store

		if store, err = artifacts.Open(ctx, os.Getenv(childStore), "one", db); err == nil {
			err = (&artifacts.Uploader{
				Ledger: db, Files: &files{dir: os.Getenv(childFiles)}, Store: store, HostID: os.Getenv(childHost), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			}).Run(ctx)
		}
	}

	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// startChild starts a process that stores files of the bench's host.
func (b *bench) startChild() *exec.Cmd {
	b.t.Helper()

	self, err := os.Executable()
	require.NoError(b.t, err)

	cmd := exec.CommandContext(b.t.Context(), self)
	cmd.Env = append(os.Environ(), childURL+"="+b.url, childStore+"="+b.storeDir, childFiles+"="+b.files.dir, childHost+"="+b.host)
	cmd.Stderr = os.Stderr
	require.NoError(b.t, cmd.Start())

	return cmd
}

// After kill -9 during an upload all stored objects are whole, and the next
// process sends the rest, and no object twice.
func TestUploader_GoesOnAfterKill(t *testing.T) {
	t.Parallel()

	b := setup(t)
	content := thousand()
	content["zz-large"] = strings.Repeat("0123456789abcdef", 4<<20) // 64 MiB
	trial, attempt := b.ended(content)

	cmd := b.startChild()

	require.Eventually(t, func() bool { return b.set(trial).Files >= 200 }, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	require.Equal(t, berth.FilesPending, b.set(trial).State)

	before := make(map[string]time.Time)

	for _, name := range b.objects() {
		if strings.HasSuffix(name, ".tmp") {
			continue
		}

		info, err := os.Stat(filepath.Join(b.storeDir, "sha256", name[:2], name))
		require.NoError(t, err)

		before[name] = info.ModTime()
	}

	require.GreaterOrEqual(t, len(before), 200)
	require.Less(t, len(before), 1001)

	for path, text := range b.stored(attempt) { // listed while it is killed
		require.Equal(t, content[path], text)
	}

	b.look(t.Context())

	set := b.set(trial)
	require.Equal(t, berth.FilesStored, set.State)
	require.Equal(t, 1001, set.Files)
	require.Equal(t, content, b.stored(attempt))

	for name, at := range before {
		info, err := os.Stat(filepath.Join(b.storeDir, "sha256", name[:2], name))
		require.NoError(t, err)
		require.Equal(t, at, info.ModTime(), "it was sent again")
	}
}
