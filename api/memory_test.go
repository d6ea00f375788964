package api_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestAttemptMemory(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	first, second := apitest.AttemptID(1, 1), apitest.AttemptID(2, 1)
	store.Exec("INSERT INTO memory_points (attempt_id, at_second, host_bytes, device_bytes, sm_milli) VALUES ($1, 2, 5, 0, 250), ($1, 600, 6, NULL, NULL)", first)
	store.Exec("UPDATE attempts SET memory_peak_bytes = 6, device_peak_bytes = 9, framework_peak_bytes = 9 WHERE id = $1", first) // no point has 9: its time is not known
	store.Exec("UPDATE attempts SET memory_peak_bytes = 0 WHERE id = $1", second)

	body := r.want(http.StatusOK, "GET", "/api/v1/attempts/"+first+"/memory", "")
	require.JSONEq(t, `{"interval_seconds": 2, "host_reserved_bytes": 4294967296, "device_reserved_bytes": 0,
		"host_peak_bytes": 6, "device_peak_bytes": 9, "points": [
		{"at": "2026-11-21T12:00:02Z", "host_bytes": 5, "device_bytes": 0, "sm_activity": 0.25},
		{"at": "2026-11-21T12:10:00Z", "host_bytes": 6}]}`, body)

	body = r.want(http.StatusOK, "GET", "/api/v1/attempts/"+second+"/memory", "") // it has no points
	require.Contains(t, body, `"points":[]`)
	require.NotContains(t, body, "peak_bytes")

	r.want(http.StatusNotFound, "GET", "/api/v1/attempts/"+apitest.NewID(999)+"/memory", "")
}

// A page can draw how full each host and GPU is, and gets.
func TestHowFull(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.AddHost(t, berth.Device{
		ID: "GPU-1", Model: berth.SimulatedModel + " 24GiB", Mode: berth.SharingTimeSlicing, MemoryBytes: 24 << 30, FreeBytes: 20 << 30, MaxContexts: 48,
	}, berth.Device{ID: "GPU-2", Mode: berth.SharingTimeSlicing, MemoryBytes: 24 << 30, Problem: "lost"})

	_, body := r.text("GET", "/api/v1/hosts", "")
	host := read[openapi.HostList](t, body).Data[0]
	require.Equal(t, int64(2<<30), host.UsedByOthersBytes)
	require.Equal(t, int64(4<<30), host.Devices[0].UsedByOthersBytes)
	require.Zero(t, host.Devices[1].UsedByOthersBytes, "not known")
	require.True(t, host.Devices[0].Simulated)
	require.Equal(t, int64(22_255<<20), host.Devices[0].DefaultModeBytes, "24,576 MiB less what driver, context and reserve take outside the pool")

	body = r.want(http.StatusOK, "POST", "/api/v1/sweep-previews", apitest.SweepFile, asYAML)

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

	store, r := sampled(t)
	store.Exec("UPDATE sweeps SET planned = 20")
	store.Exec("DELETE FROM attempts")
	store.Exec(`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at, finished_at)
		SELECT gen_random_uuid(), $1, n, '{}', $2, CASE WHEN n > 10 THEN 'running' ELSE 'succeeded' END, $3, CASE WHEN n <= 10 THEN $3::timestamptz + interval '40 seconds' END
		FROM generate_series(5, 14) n`, apitest.SweepID, apitest.SmallShape, apitest.Start)
	path := "/api/v1/sweeps/" + apitest.NewID(1)

	_, body := r.text("GET", path, "")
	require.NotContains(t, body, `"eta"`, "it has ended")

	store.SweepIs(berth.SweepRunning)

	_, body = r.text("GET", path, "")
	eta := read[openapi.Sweep](t, body).Eta
	require.InDelta(t, 60, eta.MinSeconds, 0)
	require.Contains(t, eta.Why, "6 to start and 4 that run at once")

	store.Exec("UPDATE sweeps SET max_parallel = 1")

	require.InDelta(t, 240, get[openapi.Sweep](r, path).Eta.MinSeconds, 0, "what a person set holds")

	_, body = r.text("GET", "/api/v1/sweeps", "")
	require.NotContains(t, body, `"eta"`)

	store.Exec("DELETE FROM trials WHERE finished_at IS NOT NULL AND number > 2")

	_, body = r.text("GET", path, "")
	require.NotContains(t, body, `"eta"`)
}

// Each GPU's points are separate from its machine's; unmeasured values are absent.
func TestHostUsage(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.Exec(`INSERT INTO machine_points (host_id, device_id, at, memory_bytes, reserved_bytes, measured_bytes, others_bytes, activity_milli, cpu_milli, attempts)
		SELECT $1::uuid, device, date_trunc('minute', now()) - ago * interval '1 minute', memory, reserved, measured, others, activity, cpu, attempts FROM (VALUES
			('', 2, 9, 8, 7, 0, NULL::int, 1500, 2), ('GPU-1', 2, 6, 5, 4, NULL, 250, 0, 1), ('GPU-1', 1, 6, 0, NULL, NULL, NULL, 0, 0), ('GPU-2', 2, 6, 0, NULL, NULL, NULL, 0, 0)
		) p (device, ago, memory, reserved, measured, others, activity, cpu, attempts)`, apitest.HostID)
	path := "/api/v1/hosts/" + "laptop/usage"

	_, body := r.text("GET", path, "")
	require.JSONEq(t, `{"interval_seconds": 60,
		"points": [{"at": "-", "memory_bytes": 9, "reserved_bytes": 8, "measured_bytes": 7, "used_by_others_bytes": 0, "cores_reserved": 1.5, "attempts": 2}],
		"devices": [
			{"id": "GPU-1", "points": [
				{"at": "-", "memory_bytes": 6, "reserved_bytes": 5, "measured_bytes": 4, "sm_activity": 0.25, "attempts": 1},
				{"at": "-", "memory_bytes": 6, "reserved_bytes": 0, "attempts": 0}]},
			{"id": "GPU-2", "points": [{"at": "-", "memory_bytes": 6, "reserved_bytes": 0, "attempts": 0}]}]}`, regexp.MustCompile(`"at":"[^"]+"`).ReplaceAllString(body, `"at":"-"`))

	require.Equal(t, 1800, get[openapi.HostUsage](r, path+"?hours=168").IntervalSeconds)

	store.Exec("DELETE FROM machine_points")

	_, body = r.text("GET", path, "")
	require.JSONEq(t, `{"interval_seconds": 60, "points": [], "devices": []}`, body)

	r.want(http.StatusBadRequest, "GET", path+"?hours=169", "")

	r.want(http.StatusNotFound, "GET", "/api/v1/hosts/nowhere/usage", "")
}
