package runtrial

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/runtimetest"
)

// A worker without root fetches a newer checkpoint to a host where a job had made a directory
// (Keras' BackupAndRestore, Orbax): the one that is replaced cannot be removed. The new one
// is in its place all the same, and each later call finds that so.
func TestSettleSwap_WithoutRoot(t *testing.T) {
	t.Parallel()

	if dir := os.Getenv("BERTH_TEST_SWAP"); dir != "" {
		d := dirs{attempt: filepath.Join(dir, "attempts", "a"), checkpoint: filepath.Join(dir, "checkpoints", "t")}
		left, err := d.settleSwap()
		require.NoError(t, err)
		require.ErrorIs(t, left, fs.ErrPermission)

		text, err := os.ReadFile(filepath.Join(d.checkpoint, "state"))
		require.NoError(t, err)
		require.Equal(t, "new", string(text))

		_, err = d.settleSwap() // as a later start of the attempt does
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(d.checkpoint, "state"))

		require.NoError(t, os.MkdirAll(filepath.Join(d.attempt, fetchedName), 0o700)) // a newer one is fetched
		_, err = d.settleSwap()
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(d.checkpoint, "state"))

		return
	}

	if os.Geteuid() != 0 {
		runtimetest.Skip(t, "only root makes files of others")
	}

	const worker, job = 1000, 65532

	dir, err := os.MkdirTemp("/tmp", "berth-swap-") //nolint:usetesting // another user has to enter it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })

	for _, one := range []string{"attempts/a/fetched", "checkpoints/t/backup"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, one), 0o750))
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, "attempts/a/fetched/state"), []byte("new"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "checkpoints/t/backup/weights"), []byte("old"), 0o600))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, worker, worker)) //nolint:gosec // G122: a test's own directory
	}))
	require.NoError(t, os.Chown(filepath.Join(dir, "checkpoints/t/backup"), job, job))
	require.NoError(t, os.Chown(filepath.Join(dir, "checkpoints/t/backup/weights"), job, job))

	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)

	self := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(self, program, 0o700)) //nolint:gosec // G306: it is run
	require.NoError(t, os.Chown(self, worker, worker))

	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSettleSwap_WithoutRoot$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "BERTH_TEST_SWAP="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: worker, Gid: worker}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// The same with the whole attempt: it fetches once, and says what it goes on from.
func TestRun_FetchesOnceWhatReplacesTheUnremovable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := setupSecond(t, writes("state", "7"))
		x.knows(
			berth.EarlierCheckpoint{Number: 2, HostID: "other", Host: "b", Ran: true, Left: true, Stored: storedAs("x")},
			berth.EarlierCheckpoint{Number: 1, HostID: hostID, Host: "a", Ran: true, Left: true},
		)
		x.writes(t, "older", "3")

		// Stands for EACCES: what is replaced cannot be removed, whoever runs this test.
		immutable := filepath.Join(x.checkpoint(), "older")
		if out, err := exec.CommandContext(t.Context(), "chattr", "+i", immutable).CombinedOutput(); err != nil {
			runtimetest.Skip(t, "no chattr +i here: %s", out)
		}

		moved := filepath.Join(x.dir, "attempts", attemptID, replacedName, "older")
		t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "chattr", "-i", moved, immutable).Run() })

		ended := x.start(t.Context(), x.order())
		box := startsOrEnds(t, x, ended)
		require.Equal(t, map[string]string{"state": "7"}, x.has(t))
		require.Equal(t, "from the checkpoint of attempt 2 of host b, stored at 2026-11-25T12:00:00Z", x.resumed(t))
		box.Exit(0)
		require.NoError(t, (<-ended).err)
		require.EqualValues(t, 1, x.fetched.Load())
	})
}

// The disk of this host takes no more files, and has bytes free, or fails in another way. That
// says nothing of the checkpoint: another host may take it, and neither a retry of the trial nor
// its work is lost. What the disk said is told as it is.
func TestRun_ADiskThatTakesNoFilesLosesNoCheckpoint(t *testing.T) {
	t.Parallel()

	for name, errno := range map[string]error{
		"no inodes": syscall.ENOSPC, "quota": syscall.EDQUOT, "read-only": syscall.EROFS, "broken": syscall.EIO,
		"a file server that was mounted anew": syscall.ESTALE, "a soft mount whose server is away": syscall.ETIMEDOUT, "SELinux refuses": syscall.EACCES,
		"a file larger than it takes": syscall.EFBIG, "a user that it does not know": syscall.EINVAL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := setupSecond(t, func(*os.Root) error { return &fs.PathError{Op: "openat", Path: "shard-9", Err: errno} })
				x.config.DiskFree = func() (int64, int64, error) { return 1 << 40, 1 << 40, nil }

				began := time.Now()
				ended := x.start(t.Context(), x.order())

				for {
					if box := x.docks.Process(attemptID); box != nil {
						said := x.resumed(t)
						box.Exit(0)
						<-ended
						require.Fail(t, "it started without its checkpoint", "after %s: %s", time.Since(began), said)
					}

					select {
					case got := <-ended:
						require.NoError(t, got.err)
						require.Equal(t, berth.FailureInfra, got.outcome.Kind)
						require.Contains(t, got.outcome.Message, errDisk.Error())
						require.True(t, got.outcome.NoRoom, "after ten of them the trial has failed")

						result := x.books.result(t)
						require.True(t, result.NoRoom, "another host takes it")
						require.Contains(t, result.NotTaken, errno.Error())
						require.NotContains(t, result.NotTaken, "no room")
						require.Less(t, time.Since(began), resumePatience)

						return
					case <-time.After(time.Second):
					}
				}
			})
		})
	}
}

// The store has a disk of its own, whose errors say nothing of this host's.
func TestOfDisk_KnowsTheStoresErrors(t *testing.T) {
	t.Parallel()

	full := &fs.PathError{Op: "write", Path: "state", Err: syscall.ENOSPC}
	require.ErrorIs(t, ofDisk(full), errDisk)
	require.NotErrorIs(t, ofDisk(berth.Errorf(berth.KindUnavailable, "reading from the store: %w", full)), errDisk)
	require.NotErrorIs(t, ofDisk(&fs.PathError{Op: "open", Path: "state", Err: syscall.ENOENT}), errDisk, "it may be there at the next try")
	require.NotErrorIs(t, ofDisk(context.Canceled), errDisk)
}
