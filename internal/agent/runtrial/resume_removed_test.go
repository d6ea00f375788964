package runtrial

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// restarts has an attempt write a checkpoint, its machine restart, and a job of the machine's
// owner remove its container before the worker is there.
func (r *rig) restarts(t *testing.T) {
	t.Helper()

	box := r.leaveAfter(t, r.order(), func(*fake.Process) {
		synctest.Wait()
		require.NotEmpty(t, r.who(t).Attempt.ContainerID, "the ledger knows that it ran")
		r.writeCheckpoint(t, "state")
	})

	box.Exit(137)
	synctest.Wait()
	require.NoError(t, r.docks.Remove(t.Context(), r.docks.Name(attemptID)))
}

// Its image went, too (docker system prune --all). What the attempt wrote lies in its directory:
// it is to be stored, and the next attempt is to go on from it.
func TestRun_LeavesACheckpointThoughItsContainerAndImageWereRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.restarts(t)

		r.docks.before = func(berth.Launch) error {
			return &berth.StartError{Kind: berth.FailureImageMissing, Err: berth.Errorf(berth.KindInvalid, "no such image")}
		}

		got := <-r.start(t.Context(), r.order())
		require.NoError(t, got.err)
		require.Equal(t, berth.FailureInfra, got.outcome.Kind)
		require.True(t, r.books.result(t).Checkpoint, "it is forgotten: nobody stores it, and the next attempt says nothing of it")
	})
}

// The image is there (docker container prune). The attempt gets another container, which finds
// the files of the first one: it is told so, or a script that asks TRIAL_RESUME begins anew and
// writes over them. What identifies the launch stays.
func TestRun_AnotherContainerOfTheAttemptIsToldToResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.restarts(t)

		ended := r.start(t.Context(), r.order())
		synctest.Wait()
		r.docks.started(t).Exit(0)
		require.NoError(t, (<-ended).err)

		asked := r.docks.launches()
		require.Len(t, asked, 2)
		require.NotContains(t, asked[0].Defaults, resumeVariable)
		require.Equal(t, "1", asked[1].Defaults[resumeVariable])
		require.Equal(t, asked[0].Environment, asked[1].Environment)
	})
}
