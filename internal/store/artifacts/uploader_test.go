package artifacts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

func TestUploader_StoresWhatAnAttemptWrote(t *testing.T) {
	t.Parallel()

	b := setup(t)
	content := map[string]string{
		"metrics.jsonl": "{}\n", "model/weights.h5": "weights", "empty": "", "with space.txt": "a", "ünï/çode-模型.bin": "b",
		"new\nline": "c", "model/same": "weights", "...": "three dots", "%2F": "d",
	}
	trial, attempt := b.ended(content)
	require.Equal(t, berth.FilesOff, b.set(trial).State, "nobody stores files yet")

	b.look(t.Context())

	set := b.set(trial)
	require.Equal(t, berth.FilesStored, set.State)
	require.Equal(t, len(content), set.Files)
	require.Empty(t, set.Problem)
	require.Zero(t, set.LeftOut)
	require.Equal(t, content, b.stored(attempt))
	require.Len(t, b.objects(), len(content)-1, "the same content is one object")

	for _, path := range []string{"", "/", "nothing", "../metrics.jsonl", "model"} {
		_, err := b.db.GetFile(t.Context(), attempt, path)
		require.Equal(t, berth.KindNotFound, berth.KindOf(err), path)
	}

	_, second := b.ended(content)
	b.look(t.Context())
	require.Equal(t, content, b.stored(second))
	require.Len(t, b.objects(), len(content)-1, "what another attempt stored is not sent again")
}

func TestUploader_LeavesOutWithAReason(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.uploader.Limits = artifacts.Limits{Files: 3, Bytes: 20}

	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))

	trial, attempt := b.ended(map[string]string{"a": "12345", "b": strings.Repeat("x", 16), "c": "1", "d": "2", "e": "3"})
	out := b.files.out(attempt)
	require.NoError(t, os.Symlink(secret, filepath.Join(out, "z-file")))
	require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(out, "z-dir")))
	require.NoError(t, os.Symlink("a", filepath.Join(out, "z-inside")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(out, "z-pipe"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(out, "z-\xff"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(out, strings.Repeat("l", 250), strings.Repeat("l", 250), strings.Repeat("l", 250), strings.Repeat("l", 250)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(out, strings.Repeat(strings.Repeat("l", 250)+"/", 4)+strings.Repeat("m", 100)), nil, 0o600))

	b.look(t.Context())

	set := b.set(trial)
	require.Equal(t, berth.FilesStored, set.State)
	require.Equal(t, map[string]string{"a": "12345", "c": "1", "d": "2"}, b.stored(attempt))
	require.Equal(t, 8, set.LeftOut)

	reasons := make(map[string]string)
	for _, l := range set.Reasons {
		reasons[l.Path[:min(len(l.Path), 9)]] = l.Reason
	}

	require.Contains(t, reasons["b"], "--output-limit")
	require.Contains(t, reasons["e"], "at most 3 stored files")
	require.Contains(t, reasons["z-file"], "symbolic link")
	require.Contains(t, reasons["z-dir"], "symbolic link")
	require.Contains(t, reasons["z-inside"], "symbolic link")
	require.Contains(t, reasons["z-pipe"], "no regular file")
	require.Contains(t, reasons["z-\ufffd"], "UTF-8")
	require.Contains(t, reasons["lllllllll"], "1024 bytes")
}

// On one file system a file exists once: its host's copy is the object.
func TestUploader_KeepsAFileOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	content := map[string]string{"model": "12345", "dir/epoch-1": "6789", "dir/same": "12345", "empty": ""}
	trial, attempt := b.ended(content)
	out := b.files.out(attempt)

	for range 2 { // nothing to do the second time
		b.look(t.Context())
		require.Equal(t, berth.FilesStored, b.set(trial).State)
	}

	require.Equal(t, content, b.stored(attempt))

	for name, want := range content {
		info, err := os.Stat(filepath.Join(out, name))
		require.NoError(t, err)
		require.Greater(t, info.Sys().(*syscall.Stat_t).Nlink, uint64(1), name) //nolint:forcetypeassert // Linux has no other

		text, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}

	require.NoError(t, filepath.WalkDir(out, func(path string, _ os.DirEntry, err error) error {
		require.NotContains(t, path, ".shared")

		return err
	}))

	require.NoError(t, os.RemoveAll(out)) // as a limit of the host's disk does
	require.Equal(t, content, b.stored(attempt), "the store keeps them")
}

func TestUploader_LeavesRunningAndThrownAwayAlone(t *testing.T) {
	t.Parallel()

	b := setup(t)
	running, attempt := b.ended(map[string]string{"a": "1"})
	gone, other := b.ended(nil)
	b.files.busy[attempt] = true
	require.NoError(t, os.RemoveAll(b.files.out(other)))

	b.short = true
	_, probe := b.ended(map[string]string{"a": "2"})

	b.look(t.Context())
	require.Equal(t, berth.FilesPending, b.set(running).State, "the worker is at it")
	require.Empty(t, b.stored(probe), "a short probe counts for nothing")
	require.Empty(t, b.objects())
	require.Equal(t, berth.FilesLost, b.set(gone).State)
	require.Contains(t, b.set(gone).Problem, "directory is not on its host")

	b.files.busy[attempt] = false
	b.look(t.Context())
	require.Equal(t, berth.FilesStored, b.set(running).State)
}

// An unreachable store only delays files, is reported, and loses nothing.
func TestUploader_GoesOnWhenTheStoreIsBack(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.look(t.Context())

	trial, attempt := b.ended(map[string]string{"a": "1"})
	away := b.storeDir + "-away"
	require.NoError(t, os.Rename(b.storeDir, away))

	for range 12 {
		require.ErrorContains(t, b.uploader.Look(t.Context()), "the directory is gone")
	}

	set := b.set(trial)
	require.Equal(t, berth.FilesPending, set.State)
	require.Contains(t, set.Problem, b.storeDir)

	health, err := b.db.Health(t.Context())
	require.NoError(t, err)
	require.Len(t, health.WaitingFiles, 1)
	require.Equal(t, 1, health.WaitingFiles[0].Attempts)
	require.Contains(t, health.WaitingFiles[0].Problem, "the directory is gone")

	require.NoError(t, os.Rename(away, b.storeDir))
	b.look(t.Context())
	require.Equal(t, berth.FilesStored, b.set(trial).State, "at once: twelve tries are not held against the attempt")
	require.Empty(t, b.set(trial).Problem)
	require.Equal(t, map[string]string{"a": "1"}, b.stored(attempt))
}

// Files come back with the disk of the data directory, also when a worker has
// started without it in between and used the mount point.
func TestUploader_WaitsForTheDiskOfItsFiles(t *testing.T) {
	t.Parallel()

	b := setup(t)
	trial, attempt := b.ended(map[string]string{"model": "weights"})

	disk := b.files.dir + "-disk"
	require.NoError(t, os.Rename(b.files.dir, disk))
	require.NoError(t, os.Mkdir(b.files.dir, 0o750)) // the mount point

	require.ErrorContains(t, b.uploader.Look(t.Context()), "the data directory has lost its mark")
	require.Equal(t, berth.FilesPending, b.set(trial).State)

	require.NoError(t, os.WriteFile(b.mark(), nil, 0o600))
	b.look(t.Context())
	require.Equal(t, berth.FilesPending, b.set(trial).State)
	require.Contains(t, b.set(trial).Problem, "mount the disk that was there")

	require.NoError(t, os.RemoveAll(b.files.dir))
	require.NoError(t, os.Rename(disk, b.files.dir))
	require.Eventually(t, func() bool {
		b.look(t.Context())

		return b.set(trial).State == berth.FilesStored
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, map[string]string{"model": "weights"}, b.stored(attempt))
}

// refusing is a ledger that refuses the files of one attempt.
type refusing struct {
	*postgres.Store

	attempt string
}

func (r refusing) ClaimFiles(ctx context.Context, attempt string, files []berth.Artifact) error {
	if attempt == r.attempt {
		return errors.New("these are refused")
	}

	return r.Store.ClaimFiles(ctx, attempt, files)
}

func TestUploader_OneBadAttemptStopsNoOther(t *testing.T) {
	t.Parallel()

	b := setup(t)
	bad, attempt := b.ended(map[string]string{"a": "1"})
	good, _ := b.ended(map[string]string{"a": "2"})
	u := b.newUploader(refusing{b.db, attempt})

	require.ErrorContains(t, u.Look(t.Context()), "these are refused")
	require.NoError(t, u.Look(t.Context()), "the next look begins with another")
	require.Equal(t, berth.FilesStored, b.set(good).State)
	require.Equal(t, berth.FilesPending, b.set(bad).State)
	require.Contains(t, b.set(bad).Problem, "these are refused")
}

// Files removed by a limit of the host's disk before they are stored are
// reported.
func TestUploader_SaysWhatALimitRemoved(t *testing.T) {
	t.Parallel()

	b := setup(t)
	trial, _ := b.ended(map[string]string{"a": "1"})
	set := b.set(trial)
	_, err := b.db.SetSweepState(t.Context(), b.sweep, berth.SweepStopped, "")
	require.NoError(t, err)
	require.NoError(t, b.db.SetHostStores(t.Context(), b.host, true))

	list, err := b.db.OldestOutputs(t.Context(), b.host, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.True(t, list[0].Unstored, "the host's limit takes others first")

	require.NoError(t, b.db.ExpireOutputs(t.Context(), b.host, []string{trial}, "the limit"))
	require.NoError(t, b.db.SettleFiles(t.Context(), set.AttemptID, berth.FileOutcome{State: berth.FilesStored}), "too late: changes nothing")

	set = b.set(trial)
	require.Equal(t, berth.FilesLost, set.State)
	require.Equal(t, "removed before they were stored: the limit", set.Problem)
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.db.ClaimFiles(t.Context(), set.AttemptID, []berth.Artifact{{Path: "a"}})))
}

func thousand() map[string]string {
	content := make(map[string]string)
	for i := range 1000 {
		content[fmt.Sprintf("%02d/file-%d", i%37, i)] = strings.Repeat(fmt.Sprintf("%7d\n", i), 128) // 1 KiB
	}

	return content
}
