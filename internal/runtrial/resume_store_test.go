package runtrial

import (
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
