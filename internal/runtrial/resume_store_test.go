package runtrial

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The store refuses the credentials of a worker for some minutes: a key was rotated. That
// is no damage of the checkpoint, which is whole in the store.
func TestRun_WaitsWhileCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		x := setupSecond(t, func(root *os.Root) error {
			if time.Since(began) < 5*time.Minute { // as Store.failed says it
				return berth.Errorf(berth.KindInvalid, "reading from the store %q: it refuses these credentials, or this user: AccessDenied", "s3://models")
			}

			return writes("state", "7")(root)
		})
		x.knows(berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Took: 20 * time.Hour, Stored: storedAs("x")})

		ended := x.start(t.Context(), x.order())
		for x.docks.Process(attemptID) == nil {
			time.Sleep(time.Second)
		}

		x.docks.Process(attemptID).Exit(0)
		require.NoError(t, (<-ended).err)
		require.Equal(t, fromB, x.resumed(t), "given up after %s", time.Since(began))
	})
}

// A store that accepts and then sends nothing is one that does not answer.
func TestRun_AStoreThatStallsHoldsNoTrialForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := setupSecond(t, nil)
		x.config.Restore = func(ctx context.Context, _ string, _ *os.Root, _ func(int64)) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Hour):
				return berth.Errorf(berth.KindUnavailable, "it was away")
			}
		}

		ended := x.start(t.Context(), x.order())

		box := waitedFor(t, x, time.Now(), resumePatience)
		require.Equal(t, "from nothing: the checkpoint of attempt 1 of host b is out of reach: the store sends nothing of it", x.resumed(t))
		box.Exit(0)
		require.NoError(t, (<-ended).err)
	})
}

// One that sends little by little is fetched, however long it takes.
func TestRun_GivesUpNothingThatArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := setupSecond(t, nil)
		x.config.Restore = func(ctx context.Context, _ string, root *os.Root, told func(int64)) error {
			for n := range 20 {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(4 * time.Minute):
					told(int64(n+1) << 20)
				}
			}

			return writes("state", "7")(root)
		}

		ended := x.start(t.Context(), x.order())
		box := waitedFor(t, x, time.Now(), 80*time.Minute)
		require.Equal(t, fromB, x.resumed(t))
		box.Exit(0)
		require.NoError(t, (<-ended).err)
	})
}
