package packing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// Hosts with the image are filled to the half before others pull it; a host that
// cannot get it is the last choice, however idle it is.
func TestDecide_Images(t *testing.T) {
	t.Parallel()

	has, pulls, cannot := host("has", 4, 64), host("pulls", 4, 64), host("cannot", 64, 256)

	count := func(n int, change func(*packing.Request)) map[string]int {
		requests := make([]packing.Request, n)
		for i := range requests {
			requests[i] = packing.Request{
				AttemptID: string(rune('a' + i)), SweepID: "s", Number: i, Demands: needs(berth.Demand{MemoryBytes: gib, CPUMilli: 1000}),
			}
			change(&requests[i])
		}

		placed := make(map[string]int)
		for _, d := range packing.Decide([]berth.Host{pulls, cannot, has}, nil, requests) {
			placed[d.Placement.HostID]++
		}

		return placed
	}

	lacks := func(r *packing.Request) { r.Lacking, r.Unable = []string{"pulls"}, []string{"cannot"} }

	require.Equal(t, map[string]int{"has": 2}, count(2, lacks))
	require.Equal(t, map[string]int{"has": 4, "pulls": 2}, count(6, lacks), "a pull counts as half of a host")
	require.Equal(t, map[string]int{"has": 4, "pulls": 4, "cannot": 2}, count(10, lacks), "it may have got the image since it told")
	require.Equal(t, map[string]int{"cannot": 6}, count(6, func(*packing.Request) {}), "where nothing is known, the emptiest")
}

// A trial goes back to the host that alone has its checkpoint, however loaded it is,
// but waits for no room there, and does not where the host has failed it.
func TestDecide_Checkpoint(t *testing.T) {
	t.Parallel()

	place := func(loaded int64, change func(*packing.Request)) string {
		full, idle := host("full", 4, 64), host("idle", 64, 256)
		full.CPUMilliReserved = loaded

		r := packing.Request{AttemptID: "a", SweepID: "s", Number: 1, Demands: needs(berth.Demand{MemoryBytes: gib, CPUMilli: 1000}), Checkpoint: "full"}
		change(&r)

		d := packing.Decide([]berth.Host{idle, full}, nil, []packing.Request{r})
		require.True(t, d[0].Placed)

		return d[0].Placement.HostID
	}

	require.Equal(t, "full", place(3000, func(*packing.Request) {}))
	require.Equal(t, "full", place(3000, func(r *packing.Request) { r.Lacking = []string{"full"} }), "a pull costs less than the work")
	require.Equal(t, "idle", place(3500, func(*packing.Request) {}), "it does not fit there")
	require.Equal(t, "idle", place(0, func(r *packing.Request) { r.FailedHosts = []string{"full"} }))
	require.Equal(t, "idle", place(0, func(r *packing.Request) { r.Unable = []string{"full"} }))
	require.Equal(t, "idle", place(3000, func(r *packing.Request) { r.Checkpoint = "gone" }))
	require.Equal(t, "idle", place(3000, func(r *packing.Request) { r.Checkpoint = "" }))
}
