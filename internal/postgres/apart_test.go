package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// A fault on a GPU that several share by MPS ends all of them: each runs again apart.
// When one of them then crashes by itself, its sweep is known as the cause, and no
// other sweep is.
func TestQueue_ApartAfterAFaultByMPS(t *testing.T) {
	t.Parallel()

	b := setupOn(t, pgtest.URL(t))
	b.host.Devices = []berth.Device{{
		ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MPSContexts: 44,
		MemoryBytes: 143_771 << 20, FreeBytes: 143_771 << 20, MaxContexts: 48,
	}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	other := b.another(t)
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

// A trial that faulted by itself runs apart for all its attempts, also once its sweep
// has shown clean runs.
func TestQueue_ATrialThatFaultedStaysApart(t *testing.T) {
	t.Parallel()

	b := setupOn(t, pgtest.URL(t))
	b.host.Devices = []berth.Device{{
		ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MPSContexts: 44,
		MemoryBytes: 143_771 << 20, FreeBytes: 143_771 << 20, MaxContexts: 48,
	}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	faulted := b.request(t, gib)
	b.ended(t, faulted, "GPU-1", berth.Outcome{Kind: berth.FailureCrashed, DeviceFault: true}, 0, 10)

	for range 20 {
		clean := b.request(t, gib)
		b.ran(t, clean, "GPU-1", berth.FailureOK, 10, 20)

		_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
			TrialID: clean.TrialID, SweepID: b.sweep, Number: b.trial, State: berth.TrialSucceeded, Kind: berth.FailureOK,
		})
		require.NoError(t, err)
	}

	again, sibling := b.again(t, faulted, 2), b.request(t, gib)
	require.Equal(t, map[string]bool{again.AttemptID: true, sibling.AttemptID: false}, b.apart(t))
}

// A sweep whose program faulted shares GPUs again after enough clean runs of its
// trials on GPUs. Runs on cores and failed runs do not count.
func TestQueue_ApartUntilRunsAreClean(t *testing.T) {
	t.Parallel()

	const enough = 20

	b := setupOn(t, pgtest.URL(t))
	b.host.Devices = []berth.Device{{
		ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MPSContexts: 44,
		MemoryBytes: 143_771 << 20, FreeBytes: 143_771 << 20, MaxContexts: 48,
	}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	run := func(device string, kind berth.FailureKind, fault bool) {
		t.Helper()

		r := b.request(t, gib)
		b.ended(t, r, device, berth.Outcome{Kind: kind, DeviceFault: fault}, 0, 10)

		state := berth.TrialSucceeded
		if kind != berth.FailureOK {
			state = berth.TrialFailed
		}

		_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{TrialID: r.TrialID, SweepID: b.sweep, Number: b.trial, State: state, Kind: kind})
		require.NoError(t, err)
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
	run("GPU-1", berth.FailureCrashed, true)
	require.True(t, apart(), "what ran before says nothing of later ones")

	for range enough - 1 {
		run("GPU-1", berth.FailureOK, false)
	}

	run("", berth.FailureOK, false)
	run("GPU-1", berth.FailureNoResult, false)
	require.True(t, apart())
	run("GPU-1", berth.FailureOK, false)
	require.False(t, apart())

	run("GPU-1", berth.FailureCrashed, true)
	require.True(t, apart(), "a new fault counts anew")
}

// apart says of each waiting request whether it is to share no GPU by MPS.
func (b *bundle) apart(t *testing.T) map[string]bool {
	t.Helper()

	queue, err := b.store.Queue(t.Context(), 10)
	require.NoError(t, err)

	apart := make(map[string]bool)
	for _, w := range queue.Waiting {
		apart[w.AttemptID] = w.Apart
	}

	return apart
}
