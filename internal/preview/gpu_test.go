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
