package packing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// A host without a store, where a trial with a stored checkpoint starts again, is the last
// choice of those with room; the trial waits for no other.
func TestDecide_AHostWithoutAStoreIsTheLastChoice(t *testing.T) {
	t.Parallel()

	with, without := host("with", 4, 8), host("without", 8, 16)
	with.StoresCheckpoints, with.CPUMilliReserved, with.Attempts = true, 3000, 1

	place := func(change func(h *berth.Host, r *packing.Request)) string {
		h, r := with, ask("1", 1, 1)
		r.Stored = true
		change(&h, &r)

		return where(packing.Decide([]berth.Host{h, without}, nil, []packing.Request{r}))["1"]
	}

	require.Equal(t, "with", place(func(*berth.Host, *packing.Request) {}))
	require.Equal(t, "without", place(func(h *berth.Host, _ *packing.Request) { h.CPUMilliReserved = 4000 }), "it is full")
	require.Equal(t, "without", place(func(_ *berth.Host, r *packing.Request) { r.FailedHosts = []string{"with"} }))
	require.Equal(t, "without", place(func(_ *berth.Host, r *packing.Request) { r.Holders = []string{"without"} }), "it ran there last")
	require.Equal(t, "without", place(func(_ *berth.Host, r *packing.Request) { r.Stored = false }))
}

// A trial goes back to the host whose directory has its checkpoint, unless another host, which
// would fetch it, is much emptier.
func TestDecide_PrefersTheHostThatHasTheCheckpoint(t *testing.T) {
	t.Parallel()

	for reserved, want := range map[int64]string{0: "holder", 1500: "holder", 3000: "other"} { // thousandths of a core, of 8,000
		holder, other := host("holder", 8, 16), host("other", 8, 16)
		holder.StoresCheckpoints, other.StoresCheckpoints, holder.CPUMilliReserved = true, true, reserved

		r := ask("1", 1, 1)
		r.Stored, r.Holders = true, []string{"holder"}
		require.Equal(t, map[string]string{"1": want}, where(packing.Decide([]berth.Host{other, holder}, nil, []packing.Request{r})), reserved)
	}
}
