package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/runtimetest"
)

// A worker starts on a disk full to its last block, however its predecessor
// ended: the running containers must be adopted.
func TestLockDir_OnAFullDisk(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		before func(t *testing.T, dir string) // while there is room
		told   bool                           // the file names its holder
	}{
		"after an orderly end": {told: true, before: func(t *testing.T, dir string) {
			t.Helper()

			unlock, err := lockDir(dir, workerLock, "berth worker", slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			unlock()

			text, err := os.ReadFile(filepath.Join(dir, workerLock))
			require.NoError(t, err)
			require.Error(t, json.Unmarshal(text, &holder{}), "no other machine need ask whether we live")
		}},
		"after a kill": {told: true, before: func(t *testing.T, dir string) {
			t.Helper()

			text, err := json.Marshal(thisProcess())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, workerLock), text, 0o600))
		}},
		"after an older version": {before: func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, workerLock), nil, 0o600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := smallDisk(t)
			test.before(t, dir)
			fillDisk(t, dir)

			unlock, err := lockDir(dir, workerLock, "berth worker", slog.New(slog.DiscardHandler))
			require.NoError(t, err)

			defer unlock()

			_, err = lockDir(dir, workerLock, "berth worker", slog.New(slog.DiscardHandler))
			require.Equal(t, berth.KindConflict, berth.KindOf(err))

			var now holder

			text, err := os.ReadFile(filepath.Join(dir, workerLock))
			require.NoError(t, err)
			require.Equal(t, test.told, json.Unmarshal(text, &now) == nil, string(text))

			if test.told {
				require.Equal(t, thisProcess(), now)
			}
		})
	}
}

// smallDisk mounts a disk of 64 KiB and returns its directory. Without root it
// skips the test.
func smallDisk(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		runtimetest.Skip(t, "a small disk needs root: %s", err)
	}

	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })

	return dir
}

// fillDisk writes a file until its disk takes no more.
func fillDisk(t *testing.T, dir string) {
	t.Helper()

	file, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)

	defer file.Close() //nolint:errcheck // it is full on purpose

	for err == nil {
		_, err = file.Write(make([]byte, 512))
	}

	require.ErrorIs(t, err, syscall.ENOSPC)
}
