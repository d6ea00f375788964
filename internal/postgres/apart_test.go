package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// A fault on a GPU that several share by MPS ends all of them: each runs again
// apart. When one crashes there by itself, its sweep is known, and no other sweep is.
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
	require.Equal(t, map[string]bool{sibling.AttemptID: true, beside.AttemptID: false}, b.apart(t))
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
