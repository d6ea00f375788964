package preview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/preview"
)

const h200 = "NVIDIA H200"

func withGPU(h berth.Host, gibibytes int64) berth.Host {
	h.Devices = []berth.Device{{
		ID: "GPU-1", Model: h200, Mode: berth.SharingTimeSlicing, MemoryBytes: gibibytes * gib, FreeBytes: gibibytes * gib, MaxContexts: 48,
	}}

	return h
}

// seeOn previews a spec whose shapes were measured so on a GPU.
func seeOn(t *testing.T, s berth.Spec, hosts []berth.Host, f berth.Footprint) preview.Preview {
	t.Helper()

	sketch, err := preview.Enumerate(s, "sha256:1")
	require.NoError(t, err)

	known := map[string]berth.Footprints{}
	for _, key := range sketch.Keys() {
		known[key] = berth.Footprints{h200: f}
	}

	return sketch.Preview(hosts, known)
}

// The preview says what the trials reserve of a GPU, and what binds there.
func TestPreview_OnGPUs(t *testing.T) {
	t.Parallel()

	s := decode(t, "")
	hosts := []berth.Host{host("plain", 64, 256*gib), withGPU(host("gpu", 64, 256*gib), 4)}

	p := see(t, s, hosts)
	require.Equal(t, 1, p.AtOnce)
	require.Equal(t, berth.DeviceClass(h200), p.Shapes[0].Class)
	require.True(t, p.Shapes[0].Demand.ExclusiveDevice)
	require.Equal(t, preview.SizedByUnmeasured, p.Shapes[0].SizedBy)
	require.Contains(t, p.Why, "each has a GPU for itself")

	f := full(gib, time.Minute)
	f.DevicePeakBytes = 910 << 20
	p = seeOn(t, s, hosts, f)
	require.Equal(t, int64(1088<<20), p.Shapes[0].Demand.DeviceBytes)
	require.Equal(t, 3, p.AtOnce)
	require.Contains(t, p.Why, "GPU memory binds (1 GPU with 4,096 MiB, 1,088 MiB each)")
	require.Equal(t, preview.SizedByMeasured, p.Shapes[0].SizedBy)

	s.Resources.Device = berth.DeviceCPU
	p = see(t, s, hosts)
	require.Equal(t, berth.ClassCPU, p.Shapes[0].Class)
	require.Zero(t, p.Shapes[0].Demand.DeviceBytes)

	s.Resources.Device = berth.DeviceGPU
	p = see(t, s, hosts[:1])
	require.Zero(t, p.AtOnce)
	require.Equal(t, "none can run: host plain: has no GPU", p.Why)
	require.Contains(t, codes(p.Warnings), preview.CodeNoGPU)
}

// How full hosts and GPUs get is beside what runs and what others use now.
func TestPreview_Fill(t *testing.T) {
	t.Parallel()

	s := decode(t, "")
	s.Resources.Device = berth.DeviceGPU
	box := withGPU(host("gpu", 64, 256*gib), 8)
	box.MemoryHeadroomBytes, box.MemoryFreeBytes, box.MemoryReservedBytes, box.Attempts = gib, 250*gib, 10*gib, 1
	box.Devices[0].FreeBytes, box.Devices[0].ReservedBytes, box.Devices[0].Attempts, box.Devices[0].ContextsReserved = 7*gib, 4*gib, 1, 1
	box.Devices[0].Model = berth.SimulatedModel + " 8GiB"

	f := full(gib, time.Minute)
	f.DevicePeakBytes = 910 << 20

	sketch, err := preview.Enumerate(s, "sha256:1")
	require.NoError(t, err)

	known := map[string]berth.Footprints{}
	for _, key := range sketch.Keys() {
		known[key] = berth.Footprints{box.Devices[0].Class(): f}
	}

	p := sketch.Preview([]berth.Host{host("plain", 64, 256*gib), box}, known)
	each := p.Shapes[0].Demand

	require.Equal(t, 6, p.Hosts[1].AtOnce, "when it is otherwise idle")
	require.Equal(t, 2, p.Hosts[1].AtOnceNow)
	require.Equal(t, preview.Fill{
		TotalBytes: 256 * gib, HeadroomBytes: gib, OthersBytes: 6 * gib, ReservedBytes: 10*gib + 2*each.MemoryBytes, SweepBytes: 2 * each.MemoryBytes,
	}, p.Hosts[1].Memory)
	require.Equal(t, []preview.DeviceFill{{ID: "GPU-1", Model: box.Devices[0].Model, Simulated: true, Memory: preview.Fill{
		TotalBytes: 8 * gib, OthersBytes: gib, ReservedBytes: 4*gib + 2*each.DeviceBytes, SweepBytes: 2 * each.DeviceBytes,
	}}}, p.Hosts[1].Devices)
	require.Equal(t, preview.Fill{TotalBytes: 256 * gib}, p.Hosts[0].Memory)
	require.Zero(t, p.Hosts[0].AtOnceNow)
}
