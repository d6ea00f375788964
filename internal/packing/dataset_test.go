package packing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// Only hosts with the data sets of a sweep take its trials, however much room others have.
func TestDecide_Datasets(t *testing.T) {
	t.Parallel()

	small, large := host("a", 4, 4), host("b", 64, 256)
	small.Datasets = []string{"birds", "flowers"}
	large.Datasets = []string{"birds"}

	ask := func(id string, datasets ...string) packing.Request {
		return packing.Request{
			AttemptID: id, SweepID: id, Demands: needs(berth.Demand{MemoryBytes: 2 * gib, CPUMilli: 1000}), Datasets: datasets,
			Waited: packing.DrainAfter + time.Minute, Asked: packing.DrainAfter + time.Minute,
		}
	}

	decisions := packing.Decide([]berth.Host{small, large}, nil, []packing.Request{
		ask("both", "flowers", "birds"), ask("flowers", "flowers"), ask("more", "flowers"), ask("birds", "birds"), ask("none"), ask("unknown", "fish"),
	})

	placed, by := map[string]string{}, map[string]packing.Decision{}
	for _, d := range decisions {
		placed[d.AttemptID], by[d.AttemptID] = d.Placement.HostID, d
	}

	require.Equal(t, map[string]string{"both": "a", "flowers": "a", "more": "", "birds": "b", "none": "b", "unknown": ""}, placed)

	more, unknown := by["more"], by["unknown"]
	require.Equal(t, packing.Place{HostID: "a"}, more.Kept, "it is overdue, and no other host is kept free for it")

	reasons := unknown.Rejections(0)
	require.Len(t, reasons, 2)

	for _, r := range reasons {
		require.Equal(t, berth.DimensionDataset, r.Dimension)
		require.Equal(t, "host "+r.HostName+": has no data set \"fish\"; start its worker with --dataset fish=PATH", packing.Explain(r))
	}

	require.False(t, unknown.Impossible, "a worker may be told of it any time")
	require.Zero(t, unknown.Kept, "nothing is kept free for it meanwhile")

	reasons = more.Rejections(0)
	require.Equal(t, berth.DimensionMemory, reasons[0].Dimension, "the host that could take it comes first")
	require.Equal(t, berth.DimensionDataset, reasons[1].Dimension)
}
