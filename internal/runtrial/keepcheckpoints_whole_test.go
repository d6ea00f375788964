package runtrial

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// keeping is a run that began two minutes ago, with checkpoints written so long ago.
func keeping(t *testing.T, keep int) (run *run, at func(string) string, write func(string, time.Duration)) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Limits.KeepCheckpoints = keep })

	run = r.newRun(t)
	require.NoError(t, run.dirs.make(nil))

	now := time.Now()
	run.startedAt = now.Add(-2 * time.Minute)
	at = func(name string) string { return filepath.Join(run.dirs.checkpoint, name) }
	write = func(name string, ago time.Duration) {
		require.NoError(t, os.WriteFile(at(name), []byte(name), 0o600))
		require.NoError(t, os.Chtimes(at(name), time.Time{}, now.Add(-ago)))
	}

	return run, at, write
}

// keep_checkpoints: 1. Attempt 1 is killed by the kernel (out of memory) while it writes
// ckpt-10: half of it is there. Attempt 2 starts a minute later; its watch thins at once,
// before the script has opened anything. The last whole checkpoint must still be there.
func TestKeepCheckpoints_AHalfWrittenCheckpointOfAKilledAttemptTakesNoOthersPlace(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	write("ckpt-9.pt", 5*time.Minute)
	write("ckpt-10.pt", 3*time.Minute) // cut off by SIGKILL
	run.thinCheckpoints()
	require.FileExists(t, at("ckpt-9.pt"), "the only whole one: this attempt has written none yet")

	write("ckpt-10.pt", 0) // it goes on after 9
	run.thinCheckpoints()
	require.FileExists(t, at("ckpt-9.pt"))

	write("ckpt-10.pt", 10*time.Second)
	run.thinCheckpoints()
	require.NoFileExists(t, at("ckpt-9.pt"))
	require.FileExists(t, at("ckpt-10.pt"))
}

// The clock of the host where attempt 1 was killed is two hours ahead, and the files have
// its times here: the half of ckpt-10 is none that this attempt wrote, also when the clock
// here has come that far.
func TestKeepCheckpoints_AClockThatIsAheadMakesNoHalfOfOneWhole(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	write("ckpt-9.pt", -110*time.Minute)
	write("ckpt-10.pt", -2*time.Hour) // cut off by SIGKILL

	run.startedAt = time.Now().Add(time.Minute) // they were fetched before
	run.thin(thinning{before: time.Now().Add(3 * time.Hour), since: run.startedAt})
	require.FileExists(t, at("ckpt-9.pt"), "the only whole one")
	require.FileExists(t, at("ckpt-10.pt"))
}

// The link best.pt leads to the checkpoint that was best. docs: "Names without numbers stay".
func TestKeepCheckpoints_WhatABestLinkLeadsToStays(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	write("epoch-1.pt", 3*time.Minute)
	write("epoch-2.pt", 2*time.Minute)
	write("epoch-3.pt", time.Minute)
	require.NoError(t, os.Symlink("epoch-1.pt", at("best.pt")))
	run.checkpointsEnd()

	text, err := os.ReadFile(at("best.pt"))
	require.NoError(t, err, "best.pt stays, and leads nowhere")
	require.Equal(t, "epoch-1.pt", string(text))
	require.NoFileExists(t, at("epoch-2.pt"))
	require.FileExists(t, at("epoch-3.pt"))

	// as the trial sees it, from a directory, by another link, and what belongs to it
	require.NoError(t, os.Remove(at("best.pt")))
	require.NoError(t, os.Mkdir(at("best"), 0o750))
	require.NoError(t, os.Symlink("../top.pt", at("best/model.pt")))
	require.NoError(t, os.Symlink("/trial/checkpoint/epoch-1.pt", at("top.pt")))
	write("optimizer-1.pt", 3*time.Minute)
	write("optimizer-3.pt", time.Minute)
	run.checkpointsEnd()
	require.FileExists(t, at("epoch-1.pt"))
	require.FileExists(t, at("optimizer-1.pt"))

	require.NoError(t, os.RemoveAll(at("best")))
	require.NoError(t, os.Remove(at("top.pt")))
	run.checkpointsEnd()
	require.NoFileExists(t, at("epoch-1.pt"))
	require.NoFileExists(t, at("optimizer-1.pt"))
}

// A small model is saved several times in one tick of the kernel's clock (4 ms), or by a copy
// that keeps times: of equal age the highest number is the newest.
func TestKeepCheckpoints_OfEqualAgeTheHighestNumberStays(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	for n := 1; n <= 12; n++ {
		write(fmt.Sprintf("ckpt-%d.pt", n), time.Minute)
	}

	run.checkpointsEnd()
	require.FileExists(t, at("ckpt-12.pt"))
	require.NoFileExists(t, at("ckpt-11.pt"))
}

// torch.save(model, f"model-{e}.pt") and then torch.save(optimizer, f"optimizer-{e}.pt"), which
// is larger and takes longer than 5 s. A kill now must leave one epoch of which both are there.
func TestKeepCheckpoints_FilesOfOneCheckpointGoTogether(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	write("model-4.pt", 5*time.Minute)
	write("optimizer-4.pt", 5*time.Minute)
	write("model-5.pt", 10*time.Second)
	write("optimizer-5.pt", 0) // being written
	run.thinCheckpoints()
	require.FileExists(t, at("optimizer-4.pt"))
	require.FileExists(t, at("model-4.pt"), "optimizer-4.pt is of no use without it, and epoch 5 is not whole")

	write("optimizer-5.pt", 6*time.Second)
	run.thinCheckpoints()
	require.NoFileExists(t, at("optimizer-4.pt"))
	require.NoFileExists(t, at("model-4.pt"))
	require.FileExists(t, at("model-5.pt"))
	require.FileExists(t, at("optimizer-5.pt"))
}

// A program that resumes keeps its event files beside its checkpoints (tf.estimator's model_dir,
// many trainers' --model_dir): those of earlier attempts are its curves, and no checkpoints.
func TestKeepCheckpoints_EventFilesAreNoCheckpoints(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	write("events.out.tfevents.1790000000.host.17.0.v2", 5*time.Minute)
	write("events.out.tfevents.1790000300.host.17.0.v2", time.Minute)
	run.checkpointsEnd()
	require.FileExists(t, at("events.out.tfevents.1790000000.host.17.0.v2"))
}

// keep_checkpoints: 1. The script writes ckpt-5/model.pt, validates for 20 s, and writes
// ckpt-5/optimizer.pt, without which it cannot go on.
func TestKeepCheckpoints_ADirectoryWithoutItsLastPartTakesNoOthersPlace(t *testing.T) {
	t.Parallel()

	run, at, write := keeping(t, 1)
	directory := func(name string, ago time.Duration, files ...string) {
		require.NoError(t, os.MkdirAll(at(name), 0o700))

		for _, file := range files {
			write(filepath.Join(name, file), ago)
		}

		require.NoError(t, os.Chtimes(at(name), time.Time{}, time.Now().Add(-ago)))
	}

	directory("ckpt-3", 90*time.Second, "model.pt", "optimizer.pt")
	directory("ckpt-4", time.Minute, "model.pt", "optimizer.pt")
	directory("ckpt-5", 20*time.Second, "model.pt")
	run.thinCheckpoints()
	require.NoFileExists(t, at("ckpt-3/model.pt"))
	require.FileExists(t, at("ckpt-4/optimizer.pt"), "the only one from which the script can go on")

	directory("ckpt-5", 10*time.Second, "optimizer.pt")
	directory("ckpt-6", 0, "model.pt")
	run.thinCheckpoints()
	require.NoFileExists(t, at("ckpt-4/model.pt"), "ckpt-5 is whole: the next one is begun")

	run.checkpointsEnd()
	require.NoFileExists(t, at("ckpt-5/model.pt"))
	require.FileExists(t, at("ckpt-6/model.pt"))
}
