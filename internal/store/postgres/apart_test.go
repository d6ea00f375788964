package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// apart says of each waiting request whether it is to share no GPU by MPS.
func (b *bundle) apart(t *testing.T) map[string]bool {
	t.Helper()

	apart := make(map[string]bool)
	for _, w := range b.queue(t).Waiting {
		apart[w.AttemptID] = w.Apart
	}

	return apart
}

// A fault on a GPU that several share by MPS ends all of them: each runs again apart.
// When one of them then crashes by itself, its sweep is known as the cause, and no
// other sweep is.
func TestQueue_ApartAfterAFaultByMPS(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1")

	other := b.another(t, berth.Resources{})
	culprit, peer := b.request(t, gib), other.request(t, gib)
	b.ran(t, culprit, "GPU-1", berth.FailureNeighbourFault, 0, 10)
	other.ran(t, peer, "GPU-1", berth.FailureNeighbourFault, 0, 10)

	culprit, peer = b.again(t, culprit, 2), other.again(t, peer, 2)
	sibling, beside := b.request(t, gib), other.request(t, gib)
	require.Equal(t, map[string]bool{culprit.AttemptID: true, peer.AttemptID: true, sibling.AttemptID: false, beside.AttemptID: false}, b.apart(t))

	b.ran(t, culprit, "", berth.FailureCrashed, 10, 20)
	other.ran(t, peer, "GPU-1", berth.FailureOK, 10, 20)
	require.Equal(t, map[string]bool{sibling.AttemptID: false, beside.AttemptID: false}, b.apart(t), "a crash on cores says nothing of a GPU")

	culprit = b.again(t, culprit, 3)
	b.ran(t, culprit, "GPU-1", berth.FailureCrashed, 20, 30)
	require.Equal(t, map[string]bool{sibling.AttemptID: false, beside.AttemptID: false}, b.apart(t), "a crash that was no fault of the GPU's says nothing")

	culprit = b.again(t, culprit, 4)
	b.ended(t, culprit, "GPU-1", berth.Outcome{Kind: berth.FailureCrashed, DeviceFault: true}, 30, 40)
	require.Equal(t, map[string]bool{sibling.AttemptID: true, beside.AttemptID: false}, b.apart(t))
}

// A sweep whose program faulted shares GPUs again after enough clean runs of its
// trials on GPUs. Runs on cores and failed runs do not count. The trial that faulted
// stays apart.
func TestQueue_ApartUntilRunsAreClean(t *testing.T) {
	t.Parallel()

	const enough = 20

	b := setup(t)
	b.register(t, "GPU-1")

	run := func(device string, kind berth.FailureKind, fault bool) berth.PlacementRequest {
		t.Helper()

		r := b.request(t, gib)
		b.ended(t, r, device, berth.Outcome{Kind: kind, DeviceFault: fault}, 0, 10)

		if kind == berth.FailureOK {
			b.settle(t, r, berth.TrialSucceeded, kind, nil)
		}

		return r
	}
	apart := func() bool {
		t.Helper()

		waits := b.request(t, gib)
		is := b.apart(t)[waits.AttemptID]
		_, err := b.store.WithdrawRequest(t.Context(), waits.AttemptID)
		require.NoError(t, err)

		return is
	}

	for range 3 {
		run("GPU-1", berth.FailureOK, false)
	}

	require.False(t, apart())

	faulted := run("GPU-1", berth.FailureCrashed, true)
	require.True(t, apart(), "what ran before says nothing of later ones")

	for range enough - 1 {
		run("GPU-1", berth.FailureOK, false)
	}

	run("", berth.FailureOK, false)
	run("GPU-1", berth.FailureNoResult, false)
	require.True(t, apart())
	run("GPU-1", berth.FailureOK, false)
	require.False(t, apart())

	again := b.again(t, faulted, 2)
	require.True(t, b.apart(t)[again.AttemptID])

	run("GPU-1", berth.FailureCrashed, true)
	require.True(t, apart(), "a new fault begins a new count")
}
