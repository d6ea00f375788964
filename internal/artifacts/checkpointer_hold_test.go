package artifacts_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A FIFO replaces a file between the list and the reading. Other checkpoints must not wait for it.
func TestCheckpointer_WaitsForNoFIFO(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	pipe := filepath.Join(x.files.dir, x.trial, "pipe")
	x.writes(map[string]string{"pipe": "1", "state": "2"})
	x.pointer = x.newPointer(halting{x.db, func() error {
		return errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600))
	}})

	ended := make(chan error, 1)
	go func() { ended <- x.pointer.Look(context.WithoutCancel(t.Context())) }()

	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Error("the look never ends: it opens the FIFO")

		w, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, <-ended)
	}

	x.pointer = x.newPointer(x.db)
	x.looks()
	require.Equal(t, map[string]string{"state": "2"}, x.restored(x.next().Stored.ID))
}

// A job rewrites its files while they are sent, twice.
func TestCheckpointer_UploadsThatFailedLeaveNothing(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)

	for _, version := range []string{"one", "two"} {
		x.writes(map[string]string{"blob": version, "step": "of " + version})
		x.pointer = x.newPointer(halting{x.db, func() error { x.writes(map[string]string{"step": "after " + version}); return nil }})
		x.looks() // blob is sent, and step has changed
	}

	x.writes(map[string]string{"blob": "three", "step": "three"})
	x.pointer = x.newPointer(x.db)
	x.looks()
	require.Equal(t, "1", x.sql().Text("SELECT count(*)::text FROM checkpoints"))
	require.Len(t, x.objects(), 1, "blob and step are one object; each other one stays for 7 days")
}
