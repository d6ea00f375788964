package berth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The earliest end on any host or GPU that could then take the request counts.
func TestEarliestEnds(t *testing.T) {
	t.Parallel()

	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	minute := func(n int) *time.Time { return new(at.Add(time.Duration(n) * time.Minute)) }
	on := func(host, device string, dimension berth.Dimension) berth.Rejection {
		return berth.Rejection{HostID: host, DeviceID: device, Dimension: dimension}
	}

	ends := make(berth.EarliestEnds)
	ends.Add(*minute(9), "sweep", "a", "GPU-1")
	ends.Add(*minute(5), "sweep", "a", "GPU-2")
	ends.Add(*minute(3), "other", "b", "")
	ends.Add(*minute(7), "other", "b", "")

	never := on("b", "", berth.DimensionMemory)
	never.Never = true

	for name, tt := range map[string]struct {
		reasons []berth.Rejection
		want    *time.Time
	}{
		"not looked at yet":           {nil, nil},
		"a host":                      {[]berth.Rejection{on("a", "", berth.DimensionCPU)}, minute(5)},
		"a GPU":                       {[]berth.Rejection{on("a", "GPU-1", berth.DimensionDeviceBytes)}, minute(9)},
		"the first of several":        {[]berth.Rejection{on("a", "GPU-1", berth.DimensionContexts), on("b", "", berth.DimensionMemory)}, minute(3)},
		"never fits there":            {[]berth.Rejection{never, on("a", "GPU-2", berth.DimensionAttempts)}, minute(5)},
		"no end is known there":       {[]berth.Rejection{on("c", "", berth.DimensionMemory)}, nil},
		"no end helps":                {[]berth.Rejection{on("b", "", berth.DimensionState), on("b", "", berth.DimensionDataset)}, nil},
		"max_parallel":                {[]berth.Rejection{{Dimension: berth.DimensionSweep, Needed: 3, Free: 2}}, minute(5)},
		"the sweep takes none at all": {[]berth.Rejection{{Dimension: berth.DimensionSweep}}, nil},
	} {
		r := berth.QueuedRequest{SweepID: "sweep", Reasons: tt.reasons}
		require.Equal(t, tt.want, ends.First(r.Blockers()), name)
	}
}
