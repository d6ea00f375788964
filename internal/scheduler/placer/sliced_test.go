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

	p, f := setup(t, many(3, "s1")...)
	sharedBy(f, berth.SharingTimeSlicing, 1, "s1")
	require.NoError(t, p.Round(t.Context()))
	require.Empty(t, f.placed)
	require.Contains(t, f.reasons[0]["s1-000"][0].Reason, "so that it comes back to MPS at their end")

	f.hosts = []berth.Host{gpuHost()}
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.DeviceClass("NVIDIA H200 (MPS)"), f.placed[0]["s1-000"].Class)
}
