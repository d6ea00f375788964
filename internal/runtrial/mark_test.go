package runtrial

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A host runs attempt 2, and is given up before the database hears that it runs. It comes
// back for attempt 3: what attempt 2 wrote is newer than what the store has of attempt 1.
func TestRun_AHostThatComesBackKeepsWhatItWrote(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, writes("state", "7"))

	ctx, dies := context.WithCancel(t.Context())
	ended := x.start(ctx, x.order())
	x.starts(t, true)
	x.writes(t, "state", "8")
	dies()
	require.ErrorIs(t, await(t, ended).err, ErrDetached)

	x.knows(
		berth.EarlierCheckpoint{AttemptID: attemptID, Number: 2, HostID: hostID, Host: "a", GivenUp: true},
		berth.EarlierCheckpoint{AttemptID: "first", Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Stored: storedAs("x")},
	)
	x.books.place(t, "third", 3)

	who, err := x.books.Assignee(t.Context(), "third")
	require.NoError(t, err)

	ended = x.start(t.Context(), Order{AttemptID: "third", Token: who.Attempt.Token})
	require.Eventually(t, func() bool { return x.docks.Process("third") != nil }, patience, tick)
	require.Equal(t, map[string]string{"state": "8"}, x.has(t))
	require.EqualValues(t, 1, x.fetched.Load())
	x.docks.Process("third").Exit(0)
	require.NoError(t, await(t, ended).err)

	a, err := x.books.GetAttempt(t.Context(), "third")
	require.NoError(t, err)
	require.Equal(t, "from the checkpoint of attempt 2 on this host, a", a.Resumed)
}

// The mark is beside what the job sees, and goes with the checkpoint.
func TestMark_IsNoneOfTheJobs(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, writes("state", "7"))
	ended := x.start(t.Context(), x.order())
	box := x.starts(t, true)
	marks, err := filepath.Glob(filepath.Join(x.dir, marksName, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(x.dir, marksName, "trial.json")}, marks)

	for _, m := range box.Launch.Mounts {
		require.NotContains(t, marks[0], m.Source+string(os.PathSeparator), "the job could write to it")
	}

	box.Exit(0)
	require.NoError(t, await(t, ended).err)
	require.NoError(t, x.RemoveOutputs(berth.OutputRemoval{AttemptID: attemptID, TrialID: "trial"}))
	require.NoFileExists(t, marks[0])
}

// One that a power cut left empty says nothing, and is written anew.
func TestMark_OutlivesAPowerCut(t *testing.T) {
	t.Parallel()

	d := dirs{mark: filepath.Join(t.TempDir(), marksName, "trial.json")}
	require.Empty(t, d.marked())
	require.NoError(t, d.markWriter("1"))
	require.NoError(t, os.WriteFile(d.mark, nil, 0o600))
	require.Empty(t, d.marked())
	require.NoError(t, d.markWriter("2"))
	require.NoError(t, d.markWriter("2"))
	require.Equal(t, keptMark{Attempts: []string{"2"}}, d.marked())
}

// A full disk takes no mark. Nothing starts without, and an attempt that was prepared
// before, when there were no marks, goes on.
func TestMark_AFullDiskStopsNothingThatRuns(t *testing.T) {
	t.Parallel()

	for name, before := range map[string]bool{"prepared before": true, "not prepared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			run := r.newRun(t)

			if before {
				require.NoError(t, run.dirs.make(nil))
			}

			require.NoError(t, os.WriteFile(filepath.Join(r.dir, marksName), nil, 0o600)) // no directory can be there

			if err := run.mark(); before {
				require.NoError(t, err)
			} else {
				require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
			}
		})
	}
}
