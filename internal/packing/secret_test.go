package packing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// Only hosts that can open the secrets of a sweep take its trials: a worker of an older
// version, which mounts none, has no key.
func TestDecide_SecretKeys(t *testing.T) {
	t.Parallel()

	small, large := host("a", 4, 4), host("b", 64, 256)
	small.SecretKeys = []string{"age1new", "age1old"}
	large.SecretKeys = []string{"age1new"}

	ask := func(id string, keys ...string) packing.Request {
		return packing.Request{AttemptID: id, SweepID: id, Demands: needs(berth.Demand{MemoryBytes: gib, CPUMilli: 1000}), SecretKeys: keys}
	}

	decisions := packing.Decide([]berth.Host{small, large}, nil, []packing.Request{
		ask("none"), ask("both", "age1new", "age1old"), ask("old", "age1old"), ask("new", "age1new"), ask("other", "age1other"),
	})

	placed, by := map[string]string{}, map[string]packing.Decision{}
	for _, d := range decisions {
		placed[d.AttemptID], by[d.AttemptID] = d.Placement.HostID, d
	}

	require.Equal(t, "a", placed["both"])
	require.Equal(t, "a", placed["old"])
	require.NotEmpty(t, placed["new"])
	require.NotEmpty(t, placed["none"])
	require.Empty(t, placed["other"])
	require.False(t, by["other"].Impossible, "a worker may get the key any time")

	for _, r := range by["other"].Rejections(0) {
		require.Equal(t, berth.DimensionSecret, r.Dimension)
		require.Equal(t, "host "+r.HostName+": cannot open the sweep's secrets; start its worker with --secrets-key and a file that holds the private key of age1other",
			packing.Explain(r))
	}
}
