package runtrial

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The attempt was given up while it fetched: what is in the place of the directory may be
// another attempt's, whose container has it mounted. The ledger says so, or this host does.
func TestRun_AFencedAttemptReplacesNothing(t *testing.T) {
	t.Parallel()

	for name, fence := range map[string]func(x *second) error{
		"the ledger gave it up": func(x *second) error {
			return x.books.AbandonAttempt(t.Context(), attemptID, "its host did not answer")
		},
		"a newer one runs here": func(x *second) error {
			x.writing.Store("newer", berth.AttemptCheckpoint{AttemptID: "newer", TrialID: "trial", Token: token + 1})

			return nil
		},
	} {
		var x *second

		x = setupSecond(t, func(root *os.Root) error {
			require.NoError(t, fence(x))

			return writes("state", "7")(root)
		})
		x.writes(t, "state", "of the attempt that runs now")

		got := await(t, x.start(t.Context(), x.order()))
		require.Equal(t, berth.KindFenced, berth.KindOf(got.err), name)
		require.Equal(t, map[string]string{"state": "of the attempt that runs now"}, x.has(t), name)
	}
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
