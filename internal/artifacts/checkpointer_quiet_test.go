package artifacts_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Between two looks another trial's checkpoint was sent, which took longer than noisyFor.
// A write at the second look says nothing about the time between them.
func TestCheckpointer_LooksOftenForAQuietMoment(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.pointer.After, x.pointer.Quiet = 200*time.Millisecond, time.Hour // looked for during as long
	x.looks()                                                          // knows the attempt
	x.writes(map[string]string{"model": "epoch 5", "optimizer": "epoch 5"})

	stored := func() int64 {
		return x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL")
	}

	time.Sleep(x.pointer.After) // Look measures this time and does not wait for it
	x.looks()
	require.Zero(t, stored(), "it was just written")

	time.Sleep(2 * x.pointer.After)
	x.writes(map[string]string{"model": "epoch 6"}) // the optimizer comes next
	x.looks()
	require.Zero(t, stored(), "at the second look, between two writes")

	for began := time.Now(); stored() == 0; x.looks() {
		require.Less(t, time.Since(began), 30*time.Second, "one that is always written is read as it is")
	}
}

// A store was away for longer than noisyFor. When it is back, a checkpoint of several
// files that is being written must get its quiet moment: else a model of one epoch and
// the optimizer of another replace a whole one.
func TestCheckpointer_LooksForAQuietMomentAfterTheStoreWasAway(t *testing.T) {
	t.Parallel()

	for name, sought := range map[string]bool{"not looked for before": false, "looked for before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.pointer.After, x.pointer.Quiet = 500*time.Millisecond, time.Hour // looked for during half a second
			x.looks()                                                          // knows the attempt

			stored := func() int64 {
				return x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL")
			}

			x.writes(map[string]string{"model": "epoch 5", "optimizer": "epoch 5"})

			if sought {
				time.Sleep(x.pointer.After) // Look measures this time and does not wait for it
				x.looks()
				require.Zero(t, stored(), "it was just written")
			}

			away := x.storeDir + "-away"
			require.NoError(t, os.Rename(x.storeDir, away))

			looked := 0

			for began := time.Now(); time.Since(began) < 3*x.pointer.After; time.Sleep(10 * time.Millisecond) {
				if x.pointer.Look(t.Context()) != nil {
					looked++
				}
			}

			require.Positive(t, looked, "it was due while the store was away")
			require.NoError(t, os.Rename(away, x.storeDir))
			x.writes(map[string]string{"model": "epoch 6"}) // the optimizer comes next
			x.looks()
			require.Zero(t, stored(), "at the first look, between two writes")

			for began := time.Now(); stored() == 0; x.looks() {
				require.Less(t, time.Since(began), 30*time.Second, "one that is always written is read as it is")
			}
		})
	}
}
