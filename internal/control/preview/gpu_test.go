package preview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/preview"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

const h200 = "NVIDIA H200"

func withGPU(h berth.Host, gibibytes int64) berth.Host {
	h.Devices = []berth.Device{{
		ID: "GPU-1", Model: h200, Mode: berth.SharingTimeSlicing, MemoryBytes: gibibytes * gib, FreeBytes: gibibytes * gib, MaxContexts: 48,
	}}

	return h
}

// measuredGPU is a spec of many trials of one shape on GPUs, and the footprint of that
// shape.
func measuredGPU(t *testing.T) (berth.Spec, berth.Footprint) {
	t.Helper()

	s, err := spec.Decode([]byte(`
name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}"]
parameters: [{name: lr, type: float, min: 0.001, max: 0.1, count: 60, memory: false}]
search: {algorithm: grid}
`), "")
	require.NoError(t, err)

	s.Resources.Device = berth.DeviceGPU
	f := full(gib, time.Minute)
	f.DevicePeakBytes = 910 << 20

	return s, f
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

// The preview shows the trials' reservation of a GPU, and the binding limit
// there.
func TestPreview_OnGPUs(t *testing.T) {
	t.Parallel()

	s := decode(t, "")
	hosts := []berth.Host{host("plain", 64, 256*gib), withGPU(host("gpu", 64, 256*gib), 4)}

	p := see(t, s, hosts)
	require.Equal(t, 1, p.AtOnce)
	require.Equal(t, berth.DeviceClass(h200), p.Shapes[0].Class)
	require.True(t, p.Shapes[0].Demand.ExclusiveDevice)
	require.Equal(t, preview.SizedByUnmeasured, p.Shapes[0].SizedBy)
	require.Contains(t, p.Why, "one of the attempts must be alone there")

	f := full(gib, time.Minute)
	f.DevicePeakBytes = 910 << 20
	p = seeOn(t, s, hosts, f)
	require.Equal(t, int64(1040<<20), p.Shapes[0].Demand.DeviceBytes)
	require.Equal(t, 3, p.AtOnce)
	require.Contains(t, p.Why, "needs 1,040 MiB of GPU memory, 976 MiB free")
	require.Equal(t, preview.SizedByMeasured, p.Shapes[0].SizedBy)

	s.Resources.Device = berth.DeviceCPU
	p = see(t, s, hosts)
	require.Equal(t, berth.ClassCPU, p.Shapes[0].Class)
	require.Zero(t, p.Shapes[0].Demand.DeviceBytes)

	s.Resources.Device = berth.DeviceGPU
	p = see(t, s, hosts[:1])
	require.Zero(t, p.AtOnce)
	require.Equal(t, "none can run: no host is known that has a GPU which the sweep can use (resources.device, gpu_sharing); the trial waits for one; host plain: has no GPU", p.Why)
	require.Contains(t, codes(p.Warnings), preview.CodeNoGPU)
}

// The fill of hosts and GPUs counts running attempts and others' current use.
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

// The use by programs outside Berth is unknown for a GPU or host with a problem; the GPU says why it takes no
// trials.
func TestPreview_FillWithAProblem(t *testing.T) {
	t.Parallel()

	s, f := measuredGPU(t)
	box := withGPU(host("gpu", 64, 256*gib), 24)
	box.Devices[0].FreeBytes, box.Devices[0].Problem = 0, "its driver does not say what it has free"

	p := seeOn(t, s, []berth.Host{box}, f)
	require.Equal(t, preview.DeviceFill{
		ID: "GPU-1", Model: h200, Problem: "its driver does not say what it has free", Memory: preview.Fill{TotalBytes: 24 * gib},
	}, p.Hosts[0].Devices[0])

	box.MemoryFreeBytes, box.Problem = 0, "Docker does not answer"
	p = seeOn(t, s, []berth.Host{box}, f)
	require.Zero(t, p.Hosts[0].Memory.OthersBytes)
}

// What binds on a GPU is the limit that the next trial meets there.
func TestPreview_WhatBindsOnAGPU(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		gibibytes int64
		change    func(*berth.Host, *berth.Footprint)
		atOnce    int
		binds     berth.Dimension
	}{
		"a program outside Berth": {24, func(h *berth.Host, _ *berth.Footprint) { h.Devices[0].FreeBytes = 4 * gib }, 3, berth.DimensionFreeMemory},
		"its limit of attempts":   {24, func(h *berth.Host, _ *berth.Footprint) { h.Devices[0].MaxAttempts = 2 }, 2, berth.DimensionAttempts},
		"one at a time":           {24, func(h *berth.Host, _ *berth.Footprint) { h.Devices[0].Mode = berth.SharingExclusive }, 1, berth.DimensionAttempts},
		"processes":               {80, func(*berth.Host, *berth.Footprint) {}, 48, berth.DimensionContexts},
		"activity":                {80, func(_ *berth.Host, f *berth.Footprint) { f.DeviceActivity.SMMilli = 300 }, 5, berth.DimensionActivity},
		"the first of two is cordoned": {4, func(h *berth.Host, _ *berth.Footprint) {
			h.Devices = append(h.Devices, h.Devices[0])
			h.Devices[0].CordonedAt, h.Devices[1].ID = new(time.Now()), "GPU-2"
		}, 3, berth.DimensionDeviceBytes},
		"the cores": {24, func(h *berth.Host, _ *berth.Footprint) { h.CPUMilli = 2000 }, 3, berth.DimensionCPU},
	} {
		s, f := measuredGPU(t)
		box := withGPU(host("gpu", 64, 256*gib), test.gibibytes)
		test.change(&box, &f)

		p := seeOn(t, s, []berth.Host{box}, f)
		require.Equal(t, test.atOnce, p.AtOnce, name)
		require.Equal(t, string(test.binds), p.Hosts[0].Binds, "%s: %s", name, p.Hosts[0].Why)
	}
}

// On otherwise idle machines, a GPU counts without its current attempts.
func TestPreview_IdleGPUs(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*berth.Device){
		"another sweep keeps it busy": func(d *berth.Device) { d.ActivityReserved = 1200 },
		"it has an advice for another sweep": func(d *berth.Device) {
			d.Advice = berth.Advice{Company: berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: 2}, Capped: true, Why: "two did as much as three"}
		},
	} {
		s, f := measuredGPU(t)
		f.DeviceActivity.SMMilli = 300
		box := withGPU(host("gpu", 64, 256*gib), 80)
		idle := seeOn(t, s, []berth.Host{box}, f)

		box.Devices[0].Attempts, box.Devices[0].ContextsReserved, box.Devices[0].ReservedBytes = 2, 2, 2*gib
		change(&box.Devices[0])

		busy := seeOn(t, s, []berth.Host{box}, f)
		require.Equal(t, idle.AtOnce, busy.AtOnce, name)
		require.Less(t, busy.Hosts[0].AtOnceNow, idle.AtOnce, "%s: now it counts", name)
	}
}

// A GPU is shared by MPS since a shape was measured by time slices: its size is known, and how long it takes.
func TestPreview_MeasuredInTheOtherMode(t *testing.T) {
	t.Parallel()

	s, f := measuredGPU(t)
	box := withGPU(host("gpu", 64, 256*gib), 24)
	box.Devices[0].MPSContexts, box.Devices[0].Mode = 48, berth.SharingMPS

	p := seeOn(t, s, []berth.Host{box}, f)
	require.Equal(t, berth.DeviceClass(h200+" (MPS)"), p.Shapes[0].Class)
	require.Equal(t, preview.SizedByMeasured, p.Shapes[0].SizedBy)
	require.Equal(t, f.DevicePeakBytes, p.Shapes[0].Known.DevicePeakBytes)
	require.Equal(t, time.Minute, p.Shapes[0].Duration)
	require.NotNil(t, p.Duration)
}

// How long a trial takes is known where one of the models that it can use was measured: the slowest of these, not the cores.
func TestPreview_MeasuredOnAnotherModel(t *testing.T) {
	t.Parallel()

	s, f := measuredGPU(t)
	old := withGPU(host("old", 64, 256*gib), 24)
	old.Devices[0].ID, old.Devices[0].Model = "GPU-0", "NVIDIA A100"

	sketch, err := preview.Enumerate(s, "sha256:1")
	require.NoError(t, err)

	for name, test := range map[string]struct {
		known berth.Footprints
		took  time.Duration
	}{
		"the second model": {berth.Footprints{h200: f}, time.Minute},
		"and the cores":    {berth.Footprints{h200: f, berth.ClassCPU: full(gib, time.Hour)}, time.Minute},
		"the cores alone":  {berth.Footprints{berth.ClassCPU: full(gib, time.Hour)}, time.Hour},
	} {
		p := sketch.Preview([]berth.Host{old, withGPU(host("new", 64, 256*gib), 24)}, map[string]berth.Footprints{sketch.Keys()[0]: test.known})
		require.Equal(t, preview.SizedByUnmeasured, p.Shapes[0].SizedBy, name)
		require.Equal(t, 1, p.ProbesCached, name)
		require.Equal(t, test.took, p.Shapes[0].Duration, name)
		require.NotNil(t, p.Duration, name)
	}
}
