package artifacts_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The store's disk is lost, and a server was started with --artifacts-empty. A trial that writes
// its checkpoint once an hour ends before the next one. Its checkpoint is still on its host.
func TestCheckpointer_StoresAgainWhatTheStoreHasLost(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "ten hours"})
	x.looks()
	require.Len(t, x.objects(), 1)
	require.NoError(t, os.RemoveAll(filepath.Join(x.storeDir, "sha256")))
	require.NoError(t, os.Mkdir(filepath.Join(x.storeDir, "sha256"), 0o750))

	x.fails()
	x.looks()

	e := x.next()
	require.False(t, e.Coming, "it is settled")
	require.NotNil(t, e.Stored)
	require.Equal(t, map[string]string{"state": "ten hours"}, x.restored(e.Stored.ID))
}

// The same while it runs on, and changes nothing for an hour: at its turn it is stored again.
func TestCheckpointer_StoresAgainWhatTheStoreHasLostOfARunningAttempt(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "ten hours"})
	x.looks()
	x.looks()
	require.Len(t, x.objects(), 1)
	require.NoError(t, os.RemoveAll(filepath.Join(x.storeDir, "sha256")))
	require.NoError(t, os.Mkdir(filepath.Join(x.storeDir, "sha256"), 0o750))

	x.looks()
	require.Len(t, x.objects(), 1)
	require.EqualValues(t, 1, x.sql().Int("SELECT count(*) FROM checkpoints"))
	require.Equal(t, map[string]string{"state": "ten hours"}, x.restored(x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL")))
}

// badBlock has a file in a block of the disk that cannot be read.
type badBlock struct{ *checkpoints }

func (u badBlock) OpenCheckpoint(trial string) (*os.Root, error) {
	return nil, &fs.PathError{Op: "read", Path: trial + "/shard-9", Err: syscall.EIO}
}

// A disk has a bad block. What lies there will never be stored: it is settled with the reason, or
// each further attempt elsewhere waits up to an hour for it.
func TestCheckpointer_WhatCannotBeReadIsSettled(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "ten hours"})
	x.fails()
	x.pointer.Files = badBlock{x.files}

	for range 30 { // half an hour, a look a minute
		_ = x.pointer.Look(t.Context())
	}

	e := x.next()
	require.False(t, e.Coming, "it is said to come for ever")
	require.Contains(t, e.Problem, syscall.EIO.Error())
	require.Contains(t, e.Problem, "it cannot be read")
}

// A file server is away, with the whole data directory: that is no bad block, and it comes back.
func TestCheckpointer_WaitsForTheDiskOfTheDataDirectory(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "ten hours"})
	x.fails()
	x.pointer.Files = badBlock{x.files}
	x.pointer.Mark = filepath.Join(t.TempDir(), "mark")

	for range 30 {
		require.Equal(t, berth.KindUnavailable, berth.KindOf(x.pointer.Look(t.Context())))
	}

	require.NoError(t, os.WriteFile(x.pointer.Mark, nil, 0o600))

	x.pointer.Files = x.files
	x.looks()
	require.NotNil(t, x.next().Stored)
}

// A bad block in a running attempt's files: the log says so once, and each look goes on with others.
func TestCheckpointer_ABadBlockOfOneKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "ten hours"})

	var log strings.Builder

	x.pointer.Files, x.pointer.Log = badBlock{x.files}, slog.New(slog.NewTextHandler(&log, nil))

	for range 5 {
		x.looks()
	}

	require.Equal(t, 1, strings.Count(log.String(), syscall.EIO.Error()), log.String())
}
