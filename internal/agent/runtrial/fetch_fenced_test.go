package runtrial

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// The attempt was given up while it fetched, and another one of its trial may run here by now: what
// is in the place of the directory is that one's, whose container has it mounted.
func TestRun_AFencedAttemptReplacesNothing(t *testing.T) {
	t.Parallel()

	var x *second

	x = setupSecond(t, func(root *os.Root) error {
		require.NoError(t, x.books.AbandonAttempt(t.Context(), attemptID, "its host did not answer"))

		return writes("state", "7")(root)
	})
	x.writes(t, "state", "of the attempt that runs now")

	got := await(t, x.start(t.Context(), x.order()))
	require.Equal(t, berth.KindFenced, berth.KindOf(got.err))
	require.Equal(t, map[string]string{"state": "of the attempt that runs now"}, x.has(t))
}

// The same, and the database has not told of it yet: another attempt of the trial runs here.
func TestRun_ReplacesNothingUnderARunningContainer(t *testing.T) {
	t.Parallel()

	var x *second

	x = setupSecond(t, func(root *os.Root) error {
		x.writing.Store("newer", berth.AttemptCheckpoint{AttemptID: "newer", TrialID: "trial", Token: token + 1})

		return writes("state", "7")(root)
	})
	x.writes(t, "state", "of the attempt that runs now")

	got := await(t, x.start(t.Context(), x.order()))
	require.Equal(t, berth.KindFenced, berth.KindOf(got.err))
	require.Equal(t, map[string]string{"state": "of the attempt that runs now"}, x.has(t))
}

// The database is away when the checkpoint has come: nothing is replaced before it answers, and
// nothing is fetched twice.
func TestRun_AsksUntilItMayReplace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := setupSecond(t, writes("state", "7"))
		began, asked := time.Now(), 0
		x.books.Hook(func(h *fake.LedgerHooks) {
			h.NoteWait = func(ctx context.Context, _ string, call func(context.Context) error) error {
				if x.fetched.Load() > 0 && time.Since(began) < time.Minute {
					asked++

					return berth.Errorf(berth.KindUnavailable, "the database restarts")
				}

				return call(ctx)
			}
		})

		ended := x.start(t.Context(), x.order())
		startsOrEnds(t, x, ended).Exit(0)
		require.NoError(t, (<-ended).err)
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		require.Positive(t, asked)
		require.EqualValues(t, 1, x.fetched.Load())
		require.Equal(t, map[string]string{"state": "7"}, x.has(t))
	})
}

// A Run of an earlier attempt here has not ended yet: it removes its container. That fences nobody.
func TestRun_ReplacesBesideAnEarlierAttempt(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, writes("state", "7"))
	x.writing.Store("earlier", berth.AttemptCheckpoint{AttemptID: "earlier", TrialID: "trial", Token: token - 1})

	ended := x.start(t.Context(), x.order())
	x.docks.started(t).Exit(0)
	require.NoError(t, await(t, ended).err)
	require.Equal(t, map[string]string{"state": "7"}, x.has(t))
}
