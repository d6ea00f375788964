package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/apitest"
	"github.com/berthml/berth/api/openapi"
)

func TestAttemptMemory(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	first, second := store.Attempts[0].ID, store.Attempts[1].ID
	store.Memory = map[string][]berth.MemoryPoint{first: {
		{Second: 2, At: apitest.Start.Add(2 * time.Second), HostBytes: new(int64(5)), DeviceBytes: new(int64(0)), SMMilli: new(int64(250))},
		{Second: 600, At: apitest.Start.Add(10 * time.Minute), HostBytes: new(int64(6))},
	}}
	store.Attempts[0].Usage = berth.Usage{MemoryPeakBytes: 6, DevicePeakBytes: 9, FrameworkPeakBytes: 9} // no point has 9: its time is not known
	store.Attempts[1].Usage = berth.Usage{}
	r := setup(t, store)

	status, body := r.text("GET", "/api/v1/attempts/"+first+"/memory", "")
	require.Equal(t, http.StatusOK, status, body)
	require.JSONEq(t, `{"interval_seconds": 2, "host_reserved_bytes": 4294967296, "device_reserved_bytes": 0,
		"host_peak_bytes": 6, "device_peak_bytes": 9, "points": [
		{"at": "2026-11-21T12:00:02Z", "host_bytes": 5, "device_bytes": 0, "sm_activity": 0.25},
		{"at": "2026-11-21T12:10:00Z", "host_bytes": 6}]}`, body)

	_, body = r.text("GET", "/api/v1/attempts/"+second+"/memory", "")
	require.Empty(t, read[openapi.AttemptMemory](t, body).Points, "an older worker ran it")
	require.Contains(t, body, `"points":[]`)
	require.NotContains(t, body, "peak_bytes")

	status, _ = r.text("GET", "/api/v1/attempts/"+apitest.NewID(999)+"/memory", "")
	require.Equal(t, http.StatusNotFound, status)
}

// A page can draw how full each host and GPU is, and gets.
func TestHowFull(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Hosts[0].Devices = []berth.Device{{
		ID: "GPU-1", HostID: store.Hosts[0].ID, Model: berth.SimulatedModel + " 24GiB", Mode: berth.SharingTimeSlicing,
		MemoryBytes: 24 << 30, FreeBytes: 20 << 30, MaxContexts: 48,
	}, {ID: "GPU-2", HostID: store.Hosts[0].ID, MemoryBytes: 24 << 30, Problem: "lost"}}
	r := setup(t, store)

	_, body := r.text("GET", "/api/v1/hosts", "")
	host := read[openapi.HostList](t, body).Data[0]
	require.Equal(t, int64(2<<30), host.UsedByOthersBytes)
	require.Equal(t, int64(4<<30), host.Devices[0].UsedByOthersBytes)
	require.Zero(t, host.Devices[1].UsedByOthersBytes, "not known")
	require.True(t, host.Devices[0].Simulated)
	require.Equal(t, int64(22_255<<20), host.Devices[0].DefaultModeBytes, "24,576 MiB less what driver, context and reserve take outside the pool")

	status, body := r.text("POST", "/api/v1/sweep-previews", apitest.SweepFile, asYAML)
	require.Equal(t, http.StatusOK, status, body)

	out := read[openapi.Preview](t, body)
	fit := out.Hosts[0]
	require.Equal(t, []int64{32 << 30, 1 << 30, 2 << 30}, []int64{fit.MemoryBytes, fit.MemoryHeadroomBytes, fit.MemoryUsedByOthersBytes})
	require.Equal(t, "lost", fit.Devices[1].Problem)
	require.Positive(t, fit.AtOnceNow)
	require.Equal(t, int64(fit.AtOnceNow)*out.Shapes[0].MemoryBytes, fit.MemorySweepBytes)
	require.Equal(t, fit.MemorySweepBytes, fit.MemoryReservedBytes, "nothing else runs")
	require.Equal(t, int64(24<<30), fit.Devices[0].MemoryBytes)
	require.True(t, fit.Devices[0].Simulated)
}

// A running sweep has an estimate of its end, and only when it is read alone.
func TestSweepETA(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Times = berth.TrialTimes{Ended: 10, Mean: 10 * time.Second, Lower: 9 * time.Second, Upper: 12 * time.Second}
	store.Sweeps[0].Counts = berth.Counts{Total: 14, Planned: 20, Running: 4, Succeeded: 10}
	path := "/api/v1/sweeps/" + apitest.NewID(1)
	r := setup(t, store)

	_, body := r.text("GET", path, "")
	require.NotContains(t, body, `"eta"`, "it has ended")

	store.Change(func() { store.Sweeps[0].State = berth.SweepRunning })

	_, body = r.text("GET", path, "")
	eta := read[openapi.Sweep](t, body).Eta
	require.InDelta(t, 13.5, eta.MinSeconds, 0)
	require.InDelta(t, 36, eta.MaxSeconds, 0)
	require.Contains(t, eta.Why, "6 to start and 4 that run at once")

	store.Change(func() { store.Sweeps[0].MaxParallel = 1 })

	_, body = r.text("GET", path, "")
	require.InDelta(t, 54, read[openapi.Sweep](t, body).Eta.MinSeconds, 0, "what a person set holds")

	_, body = r.text("GET", "/api/v1/sweeps", "")
	require.NotContains(t, body, `"eta"`)

	store.Change(func() { store.Times.Ended = 2 })

	_, body = r.text("GET", path, "")
	require.NotContains(t, body, `"eta"`)
}

// Each GPU's points are separate from its machine's; unmeasured values are absent.
func TestHostUsage(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Machines = map[string][]berth.MachinePoint{store.Hosts[0].ID: {
		{At: apitest.Start, MemoryBytes: 9, ReservedBytes: 8, MeasuredBytes: new(int64(7)), OthersBytes: new(int64(0)), CPUMilli: 1500, Attempts: 2},
		{DeviceID: "GPU-1", At: apitest.Start, MemoryBytes: 6, ReservedBytes: 5, MeasuredBytes: new(int64(4)), ActivityMilli: new(int64(250)), Attempts: 1},
		{DeviceID: "GPU-1", At: apitest.Start.Add(time.Minute), MemoryBytes: 6},
		{DeviceID: "GPU-2", At: apitest.Start, MemoryBytes: 6},
	}}
	r := setup(t, store)
	path := "/api/v1/hosts/" + store.Hosts[0].Name + "/usage"

	_, body := r.text("GET", path, "")
	require.JSONEq(t, `{"interval_seconds": 60,
		"points": [{"at": "2026-11-21T12:00:00Z", "memory_bytes": 9, "reserved_bytes": 8, "measured_bytes": 7, "used_by_others_bytes": 0, "cores_reserved": 1.5, "attempts": 2}],
		"devices": [
			{"id": "GPU-1", "points": [
				{"at": "2026-11-21T12:00:00Z", "memory_bytes": 6, "reserved_bytes": 5, "measured_bytes": 4, "sm_activity": 0.25, "attempts": 1},
				{"at": "2026-11-21T12:01:00Z", "memory_bytes": 6, "reserved_bytes": 0, "attempts": 0}]},
			{"id": "GPU-2", "points": [{"at": "2026-11-21T12:00:00Z", "memory_bytes": 6, "reserved_bytes": 0, "attempts": 0}]}]}`, body)

	_, body = r.text("GET", path+"?hours=168", "")
	require.Equal(t, 1800, read[openapi.HostUsage](t, body).IntervalSeconds)

	store.Change(func() { store.Machines = nil })

	_, body = r.text("GET", path, "")
	require.JSONEq(t, `{"interval_seconds": 60, "points": [], "devices": []}`, body)

	status, body := r.text("GET", path+"?hours=169", "")
	require.Equal(t, http.StatusBadRequest, status, body)

	status, _ = r.text("GET", "/api/v1/hosts/nowhere/usage", "")
	require.Equal(t, http.StatusNotFound, status)
}
