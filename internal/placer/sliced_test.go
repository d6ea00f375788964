package placer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The time that a GPU is shared by time slices without need adds up over the rounds,
// and starts from zero once it was not.
func TestSliced(t *testing.T) {
	t.Parallel()

	var s sliced

	now := time.Unix(1000, 0)
	dev := berth.Device{ID: "GPU-1", Mode: berth.SharingTimeSlicing, MPSContexts: 44, Attempts: 1}
	after := func(d time.Duration, change func(*berth.Device)) time.Duration {
		now = now.Add(d)
		change(&dev)

		hosts := []berth.Host{{ID: "a", Devices: []berth.Device{dev}}}
		s.begin(hosts, now)

		return hosts[0].Devices[0].SlicedFor
	}
	as := func(*berth.Device) {}

	require.Positive(t, after(0, as))

	first := after(time.Second, as)
	require.Equal(t, first+time.Second, after(time.Second, as))
	require.Equal(t, first+time.Second+longestRound, after(time.Hour, as), "what nobody waited in does not count")
	require.Zero(t, after(time.Second, func(d *berth.Device) { d.MPSProblem = "no" }), "it has a reason")
	require.Equal(t, first+2*time.Second+longestRound, after(time.Second, func(d *berth.Device) { d.MPSProblem = "" }), "it goes on where it was")
	require.Zero(t, after(time.Second, func(d *berth.Device) { d.Attempts = 0 }))
	require.Zero(t, after(time.Second, func(d *berth.Device) { d.Attempts, d.Mode = 2, berth.SharingMPS }))
	require.Zero(t, after(time.Second, func(d *berth.Device) { d.Mode, d.MPSContexts = berth.SharingTimeSlicing, 0 }), "it has no MPS")
}

// A GPU shared by time slices without need is closed, from the first round on, to
// requests that can use MPS.
func TestRound_AGPUComesBackToMPS(t *testing.T) {
	t.Parallel()

	var waiting []berth.WaitingRequest

	for _, id := range []string{"a", "b", "c"} {
		r := request(id, gib)
		r.ShapeKey, r.Resources.Device, r.Resources.CPUs = "shape", berth.DeviceGPU, 500
		waiting = append(waiting, r)
	}

	p, f := setup(t, waiting...)
	f.known = map[string]berth.Footprints{"shape": {"NVIDIA H200": {Source: berth.FootprintFull, Samples: 1, DevicePeakBytes: 910 << 20, MemoryPeakBytes: gib / 2}}}
	f.hosts[0].Devices = []berth.Device{{
		ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MPSContexts: 44, MemoryBytes: 80 * gib, FreeBytes: 80 * gib, MaxContexts: 48,
		Attempts: 1, ContextsReserved: 1, ReservedBytes: gib,
	}}

	require.NoError(t, p.Round(t.Context()))
	require.Empty(t, f.placed)
	require.Contains(t, f.reasons[0]["a"][0].Reason, "so that it comes back to MPS at their end")

	f.hosts[0].Devices[0].Attempts, f.hosts[0].Devices[0].ContextsReserved, f.hosts[0].Devices[0].ReservedBytes = 0, 0, 0
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.DeviceClass("NVIDIA H200 (MPS)"), f.placed[0]["a"].Class)
}
