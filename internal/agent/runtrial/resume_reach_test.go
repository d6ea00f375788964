package runtrial

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// coming is a checkpoint that its host stores at the end of a long wait.
func coming(began time.Time) berth.EarlierCheckpoint {
	e := berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Coming: true}
	if time.Since(began) > 4*time.Minute {
		e.Coming, e.Stored = false, storedAs("x")
	}

	return e
}

// PostgreSQL restarts once while an attempt waits for its checkpoint. The host is not at
// fault, and the wait goes on where it was.
func TestRun_WaitsOnWhenTheDatabaseIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		x := setupSecond(t, writes("state", "7"))

		var blips atomic.Int32

		x.books.Hook(func(h *fake.LedgerHooks) {
			h.Checkpoints = func(context.Context, string, func(context.Context) ([]berth.EarlierCheckpoint, error)) ([]berth.EarlierCheckpoint, error) {
				if waited := time.Since(began); waited > 2*time.Minute && waited < 3*time.Minute {
					blips.Add(1)
					return nil, berth.Errorf(berth.KindUnavailable, "the database restarts")
				}

				return []berth.EarlierCheckpoint{coming(began)}, nil
			}
		})

		ended := x.start(t.Context(), x.order())
		box := startsOrEnds(t, x, ended)
		require.InDelta(t, 4*60, time.Since(began).Seconds(), 5)
		require.Greater(t, blips.Load(), int32(1))
		box.Exit(0)
		require.NoError(t, (<-ended).err)
		require.Equal(t, fromB, x.resumed(t))
	})
}

// startsOrEnds waits for the container of an attempt that must not end without one.
func startsOrEnds(t *testing.T, x *second, ended <-chan answer) *fake.Process {
	t.Helper()

	for {
		if box := x.docks.Process(attemptID); box != nil {
			return box
		}

		select {
		case got := <-ended:
			require.Fail(t, "it ended without a container", "%s: %s", got.outcome.Kind, got.outcome.Message)
		case <-time.After(time.Second):
		}
	}
}
