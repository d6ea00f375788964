package placer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A trial larger than any GPU gets the largest one alone, by time slices although the
// GPU has MPS, with the missing memory from its host; others use the rest. Without
// the key in its sweep file it is refused, and the error names the key.
func TestRound_Spill(t *testing.T) {
	t.Parallel()

	const h200 = "NVIDIA H200"

	huge, beside := request("huge", gib), request("beside", gib)
	huge.ShapeKey, huge.Resources.Device, huge.Resources.GPUMemory, huge.Resources.CPUs = "a", berth.DeviceGPU, 100*gib, 500
	huge.Resources.GPUMemorySpill, huge.TrialNumber = true, 1
	beside.ShapeKey, beside.Resources.Device, beside.Resources.GPUMemory, beside.Resources.CPUs = "b", berth.DeviceGPU, gib, 500
	beside.TrialNumber = 2

	p, f := setup(t, huge, beside)
	f.hosts[0].MemoryBytes, f.hosts[0].MemoryFreeBytes = 64*gib, 64*gib
	f.hosts[0].Devices = []berth.Device{
		{ID: "GPU-1", Model: "NVIDIA A2", Mode: berth.SharingTimeSlicing, MemoryBytes: 16 * gib, FreeBytes: 16 * gib, MaxContexts: 48},
		{ID: "GPU-2", Model: h200, Mode: berth.SharingTimeSlicing, MemoryBytes: 84 * gib, HeadroomBytes: 4 * gib, FreeBytes: 84 * gib, MaxContexts: 48, MPSContexts: 44},
	}

	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.placed, 1)
	require.Equal(t, berth.Placement{HostID: "h", DeviceID: "GPU-2", Class: h200, Demand: berth.Demand{
		MemoryBytes: 21 * gib, CPUMilli: 500, DeviceBytes: 80 * gib, Contexts: 1, ExclusiveDevice: true, SpillBytes: 20 * gib,
	}}, withoutMixes(f.placed)[0]["huge"])
	require.Equal(t, "GPU-1", f.placed[0]["beside"].DeviceID)

	f.waiting[0].Resources.GPUMemorySpill = false
	require.NoError(t, p.Round(t.Context()))
	require.Contains(t, f.refused["huge"][0].Reason, "needs 102,400 MiB of GPU memory, ")
	require.Contains(t, f.refused["huge"][0].Reason, "there at all; with resources.gpu_memory_spill it may run alone in unified memory")

	f.waiting[0].Resources.GPUMemorySpill, f.waiting[0].Resources.GPUMemory = true, 200*gib // 120 more than a host of 64 has
	f.refused = nil
	require.NoError(t, p.Round(t.Context()))
	require.NotContains(t, f.refused["huge"][0].Reason, "gpu_memory_spill")
	require.Contains(t, f.refused["huge"][0].Reason, "of memory, 65,536 MiB there at all")
}
