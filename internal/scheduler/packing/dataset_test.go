package packing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// Only hosts with the data sets of a sweep, and with keys that open its secrets, take its
// trials, however much room others have.
func TestDecide_DatasetsAndSecretKeys(t *testing.T) {
	t.Parallel()

	small, large := host("a", 4, 4), host("b", 64, 256)
	small.Datasets, small.SecretKeys = []string{"birds", "flowers"}, []string{"age1new", "age1old"}
	large.Datasets, large.SecretKeys = []string{"birds"}, []string{"age1new"}

	for name, tt := range map[string]struct {
		of                  func(names ...string) packing.Request
		common, only, other string // of both hosts, of the small one, of neither
		dimension           berth.Dimension
		says                string
	}{
		"data sets": {
			func(names ...string) packing.Request { return packing.Request{Datasets: names} }, "birds", "flowers", "fish",
			berth.DimensionDataset, "has no data set \"fish\"; start its worker with --dataset fish=PATH",
		},
		"secrets": {
			func(names ...string) packing.Request { return packing.Request{SecretKeys: names} }, "age1new", "age1old", "age1other",
			berth.DimensionSecret, "cannot open the sweep's secrets; start its worker with --secrets-key and a file that holds the private key of age1other",
		},
	} {
		ask := func(id string, names ...string) packing.Request {
			r := tt.of(names...)
			r.AttemptID, r.SweepID, r.Demands = id, id, needs(berth.Demand{MemoryBytes: 2 * gib, CPUMilli: 1000})
			r.Waited = packing.DrainAfter + time.Minute

			return r
		}

		decisions := packing.Decide([]berth.Host{small, large}, nil, []packing.Request{
			ask("both", tt.only, tt.common), ask("first", tt.only), ask("more", tt.only), ask("common", tt.common), ask("none"), ask("unknown", tt.other),
		})
		require.Equal(t, map[string]string{"both": "a", "first": "a", "common": "b", "none": "b"}, where(decisions), name)

		more, unknown := decisionOf(t, decisions, "more"), decisionOf(t, decisions, "unknown")
		require.Equal(t, packing.Place{HostID: "a"}, more.Kept, "it is overdue, and no other host is kept free for it")
		require.Equal(t, berth.DimensionMemory, more.Rejections(0)[0].Dimension, "the host that could take it comes first")
		require.Equal(t, tt.dimension, more.Rejections(0)[1].Dimension)
		require.False(t, unknown.Impossible, "a worker may get it any time")
		require.Zero(t, unknown.Kept, "nothing is kept free for it meanwhile")

		for _, r := range unknown.Rejections(0) {
			require.Equal(t, tt.dimension, r.Dimension)
			require.Equal(t, "host "+r.HostName+": "+tt.says, packing.Explain(r))
		}
	}
}
