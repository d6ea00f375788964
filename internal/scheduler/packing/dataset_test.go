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
	small.Datasets, small.SecretKeys = []string{"birds@1", "flowers@1"}, []string{"age1new", "age1old"}
	large.Datasets, large.SecretKeys = []string{"birds@1"}, []string{"age1new"}

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

// A sweep that reads one version of a data set goes to no host with another, or with one that
// its worker has not read yet.
func TestDecide_DatasetVersions(t *testing.T) {
	t.Parallel()

	says := map[string]string{
		"flowers@1": "",
		"flowers@2": `host host-a: has data set "flowers" in version 2, and the sweep reads version 1: copy the files with their times, as rsync -a does`,
		"flowers":   `host host-a: is reading which version of data set "flowers" it has`,
		"birds@1":   `host host-a: has no data set "flowers"; start its worker with --dataset flowers=PATH`,
	}
	for has, want := range says {
		h := host("a", 4, 4)
		h.Datasets = []string{has}

		decisions := packing.Decide([]berth.Host{h}, nil, []packing.Request{{
			AttemptID: "r", SweepID: "s", Datasets: []string{"flowers@1"}, Demands: needs(berth.Demand{MemoryBytes: gib, CPUMilli: 1000}),
		}})
		if want == "" {
			require.Equal(t, map[string]string{"r": "a"}, where(decisions), has)

			continue
		}

		require.Equal(t, want, packing.Explain(decisionOf(t, decisions, "r").Rejections(0)[0]))
	}
}
