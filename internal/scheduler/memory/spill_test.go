package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

func spilled(had, of int64, device bool, count int) *berth.LastOOM {
	last := ranOutOfGPU(had, true, count)
	last.Device, last.Demand.SpillBytes = device, of*gib
	last.Demand.MemoryBytes += of * gib

	if !device {
		last.PeakBytes = last.Demand.MemoryBytes
	}

	return last
}

// A trial larger than any GPU spills into its host's memory, alone on the largest one and
// never by MPS, only if its sweep allows it. Figures are in GiB; hosts have 64 of memory.
func TestSizes_Spill(t *testing.T) {
	t.Parallel()

	shared := card(big, 80)
	shared.MPSContexts = 44
	hosts := []berth.Host{machine(berth.HostReady, 512, 512), gpuHost(card(small, 16)), gpuHost(shared)}

	type want struct{ device, spill, memory int64 }

	for name, tt := range map[string]struct {
		resources  berth.Resources
		last       *berth.LastOOM
		want       want // on the big GPU alone; zero = it is not spilled
		infeasible bool
	}{
		"the file asks for more than any GPU has":                {resources: berth.Resources{GPUMemory: 100 * gib, Memory: 4 * gib}, want: want{80, 20, 24}},
		"and for more than any host has, which it waits for":     {resources: berth.Resources{GPUMemory: 180 * gib, Memory: 4 * gib}, want: want{80, 100, 104}},
		"and insists on time slices":                             {resources: berth.Resources{GPUMemory: 100 * gib, Memory: 4 * gib, GPUSharing: "time_slicing"}, want: want{80, 20, 24}},
		"as much as the largest has":                             {resources: berth.Resources{GPUMemory: 80 * gib}},
		"nothing is known":                                       {},
		"it ran out of a part":                                   {last: ranOutOfGPU(20, false, 1)},
		"it ran out of a smaller GPU":                            {last: ranOutOfGPU(16, true, 1)},
		"it ran out of the largest":                              {resources: berth.Resources{Memory: 4 * gib}, last: ranOutOfGPU(80, true, 2), want: want{80, 40, 44}},
		"it filled the largest, of which less was booked":        {resources: berth.Resources{Memory: 4 * gib}, last: filled(20, 78, 1), want: want{80, 40, 44}},
		"its last attempt needs more than a GPU":                 {resources: berth.Resources{Memory: 4 * gib}, last: ranOutOfGPU(64, false, 2), want: want{80, 16, 20}},
		"it spilled too little":                                  {resources: berth.Resources{Memory: 4 * gib}, last: spilled(80, 20, true, 1), want: want{80, 60, 64}},
		"it spilled too little, and the host has no more":        {resources: berth.Resources{Memory: 4 * gib}, last: spilled(80, 60, true, 1), infeasible: true},
		"it spilled, and the host's part was too small":          {last: spilled(80, 20, false, 1), want: want{80, 20, 24}},
		"with three attempts, it has a whole GPU for the second": {last: ranOutOfGPU(4, false, 1)},
		"and spills with the third":                              {resources: berth.Resources{Memory: 4 * gib}, last: ranOutOfGPU(80, true, 2), want: want{80, 40, 44}},
		"it has no attempt left":                                 {last: ranOutOfGPU(80, true, 3), infeasible: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tt.resources.Device, tt.resources.GPUMemorySpill = berth.DeviceGPU, true
			ask := memory.Ask{Resources: tt.resources, Last: tt.last}
			demands, ok := memory.Sizes(ask, nil, hosts)
			require.Equal(t, !tt.infeasible, ok)

			if tt.infeasible {
				return
			}

			if tt.want == (want{}) {
				for _, d := range demands {
					require.Zero(t, d.SpillBytes)
				}

				return
			}

			require.Len(t, demands, 1)
			d := demands[big]
			require.True(t, d.ExclusiveDevice)
			require.Equal(t, tt.want, want{d.DeviceBytes / gib, d.SpillBytes / gib, d.MemoryBytes / gib})
			require.Equal(t, 1, d.Contexts)

			ask.Resources.GPUMemorySpill = false
			demands, _ = memory.Sizes(ask, nil, hosts)

			if tt.last == nil || tt.last.Demand.SpillBytes == 0 {
				for _, d := range demands {
					require.Zero(t, d.SpillBytes, "no sweep says so")
				}
			}
		})
	}
}

// filled had a GPU alone, with had bytes booked, and held this much of it.
func filled(had, held int64, count int) *berth.LastOOM {
	last := ranOutOfGPU(had, true, count)
	last.PeakBytes = held * gib

	return last
}

// The memory of a run in unified memory teaches nothing about its shape.
func TestObserve_Spill(t *testing.T) {
	t.Parallel()

	u := berth.Usage{MemoryPeakBytes: 50 * gib, DevicePeakBytes: 5 * gib, Samples: 9, DeviceSamples: 9}
	_, ok := memory.Observe(nil, "key", berth.FootprintFull, berth.FailureOK, u, berth.Demand{SpillBytes: gib})
	require.False(t, ok)

	prior := berth.Footprint{ShapeKey: "key", Samples: 1, MemoryPeakBytes: gib}
	f, ok := memory.Observe(&prior, "key", berth.FootprintFull, berth.FailureHostOOM, u, berth.Demand{SpillBytes: gib})
	require.True(t, ok)
	require.Equal(t, prior, f)
}
