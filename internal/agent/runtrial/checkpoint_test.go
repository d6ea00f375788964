package runtrial

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// checkpoints is where the attempts that count of the rig's trial have theirs.
func (r *rig) checkpoints() string { return filepath.Join(r.dir, "checkpoints", "trial") }

// writeCheckpoint is what a job leaves in the trial's checkpoint directory.
func (r *rig) writeCheckpoint(t *testing.T, name string) {
	t.Helper()

	require.NoError(t, os.MkdirAll(r.checkpoints(), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(r.checkpoints(), name), []byte("weights"), 0o600))
}

func mountOf(t *testing.T, l berth.Launch, target string) string {
	t.Helper()

	for _, m := range l.Mounts {
		if m.Target == target {
			return m.Source
		}
	}

	require.Fail(t, "no mount", target)

	return ""
}

// A short probe that leaves a checkpoint must not become the real run's start.
func TestRun_ShortProbeLeavesNothing(t *testing.T) {
	t.Parallel()

	r := setup(t)
	order := r.order()
	order.Short = true

	ended := r.start(t.Context(), order)
	box := r.docks.started(t)
	require.NotContains(t, box.Launch.Environment, "TRIAL_RESUME")
	require.Equal(t, "probe", box.Launch.Environment["TRIAL_MODE"])

	checkpoint := mountOf(t, box.Launch, "/trial/checkpoint")
	require.NotEqual(t, r.checkpoints(), checkpoint)
	require.NoError(t, os.WriteFile(filepath.Join(checkpoint, "two-epochs"), []byte("weights"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, "/trial/out"), "plot"), nil, 0o600))
	require.Equal(t, berth.FailureOK, ends(t, box, ended, "", 0).Kind, "it needs no objective")
	require.Equal(t, berth.FootprintShort, r.books.result(t).Source)
	require.NoDirExists(t, filepath.Join(r.dir, "attempts", attemptID), "nothing of it stays")

	r.books.place(t, "second", 2) // the ledger says of a short probe that it does not count

	l := r.launchOf(t, berth.Order{AttemptID: "second", Token: token})
	require.NotContains(t, l.Environment, "TRIAL_RESUME")
	require.Equal(t, r.checkpoints(), mountOf(t, l, "/trial/checkpoint"))

	entries, err := os.ReadDir(r.checkpoints())
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestLaunch_Resumes(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		short bool
		files func(t *testing.T, r *rig)
		want  bool
	}{
		"first attempt":        {},
		"an earlier one wrote": {files: func(t *testing.T, r *rig) { t.Helper(); r.writeCheckpoint(t, "model") }, want: true},
		"only empty directories": {files: func(t *testing.T, r *rig) {
			t.Helper()
			require.NoError(t, os.MkdirAll(filepath.Join(r.checkpoints(), "a", "b"), 0o750))
		}},
		"a file below": {files: func(t *testing.T, r *rig) {
			t.Helper()
			require.NoError(t, os.MkdirAll(filepath.Join(r.checkpoints(), "a"), 0o750))
			r.writeCheckpoint(t, "a/model")
		}, want: true},
		"only what does not last": {files: func(t *testing.T, r *rig) {
			t.Helper()
			require.NoError(t, os.MkdirAll(r.checkpoints(), 0o750))
			require.NoError(t, syscall.Mkfifo(filepath.Join(r.checkpoints(), "pipe"), 0o600))
			require.NoError(t, syscall.Mknod(filepath.Join(r.checkpoints(), "socket"), syscall.S_IFSOCK|0o600, 0))
		}},
		"a probe, after a run": {short: true, files: func(t *testing.T, r *rig) { t.Helper(); r.writeCheckpoint(t, "model") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			if c.files != nil {
				c.files(t, r)
			}

			l := r.launchOf(t, berth.Order{AttemptID: attemptID, Token: token, Short: c.short})
			_, resumes := l.Environment["TRIAL_RESUME"]
			require.Equal(t, c.want, resumes)
		})
	}
}

// Hours of training lie in the checkpoint directory. A short probe between two
// whole attempts takes none of it, and neither does a database that was restored
// from before the attempt that wrote it.
func TestRun_CheckpointOutlivesAShortProbe(t *testing.T) {
	t.Parallel()

	r := setup(t)
	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	r.writeCheckpoint(t, "model")
	box.Exit(139)
	require.Equal(t, berth.FailureCrashed, await(t, ended).outcome.Kind)

	r.books.place(t, "second", 2)

	who, err := r.books.Assignee(t.Context(), "second")
	require.NoError(t, err)

	ended = r.start(t.Context(), berth.Order{AttemptID: "second", Token: who.Attempt.Token, Short: true})
	require.Eventually(t, func() bool { return r.docks.Process("second") != nil }, patience, tick)
	require.NotContains(t, r.docks.Process("second").Launch.Environment, "TRIAL_RESUME")
	r.docks.Process("second").Exit(0)
	require.NoError(t, await(t, ended).err)

	requireKept := func(attemptID string) {
		t.Helper()

		l := r.launchOf(t, berth.Order{AttemptID: attemptID, Token: 1000})
		require.Equal(t, "1", l.Environment["TRIAL_RESUME"])
		require.FileExists(t, filepath.Join(r.checkpoints(), "model"))
	}

	r.books.place(t, "third", 3)
	requireKept("third")

	r.books.Ledger = newBooks(t).Ledger
	requireKept(attemptID)
}

// A container of an earlier version, which kept no launch and injected other
// variables, is adopted, and known by its own hash from then on.
func TestRun_AdoptsAContainerOfAnotherVersion(t *testing.T) {
	t.Parallel()

	r := setup(t)
	elsewhere := t.TempDir() // its data directory was another one
	_, err := r.docks.Ensure(t.Context(), berth.Launch{
		AttemptID: attemptID, Token: token, Image: imageID, SpecHash: "of the earlier version", Mounts: []berth.Mount{{Source: elsewhere, Target: "/trial/out"}},
	})
	require.NoError(t, err)

	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "metrics.jsonl"), []byte(`{"metrics":{"acc":0.5}}`+"\n"), 0o600))

	r.leaveAfter(t, r.order(), func(*fake.Process) {
		require.Eventually(t, func() bool { return r.Busy(attemptID) && len(r.docks.launches()) == 2 }, patience, tick)
	})

	ended := r.start(t.Context(), r.order())
	require.Eventually(t, func() bool { return len(r.docks.launches()) == 3 }, patience, tick)
	require.Equal(t, "of the earlier version", r.docks.launches()[2].SpecHash)
	r.docks.started(t).Exit(0)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, 1, r.docks.made)
	require.InDelta(t, 0.5, *got.outcome.Value, 0, "read where the container writes")
}
