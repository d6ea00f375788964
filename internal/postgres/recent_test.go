package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// The newest successful attempts on a class count: the framework's largest own count with
// the driver's value for that attempt, and the part of the runs on the GPU with measured
// activity. Failed runs, runs on cores, and older ones do not count.
func TestRecentUsage(t *testing.T) {
	t.Parallel()

	const mib = 1 << 20

	b := setupOn(t, pgtest.URL(t))
	b.host.Devices = []berth.Device{{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 8 << 30, FreeBytes: 8 << 30, MaxContexts: 48}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	second := 0
	key := ""
	run := func(device string, kind berth.FailureKind, u berth.Usage) {
		t.Helper()

		r := b.request(t, gib)
		key = r.ShapeKey
		class := berth.ClassCPU

		if device != "" {
			class, r.Demand.DeviceBytes = "NVIDIA H200", gib
		}

		_, err := b.store.Place(t.Context(), map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, DeviceID: device, Class: class, Demand: r.Demand}})
		require.NoError(t, err)

		status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
		require.NoError(t, err)

		second++
		at := hourAgo.Add(time.Duration(second) * time.Second)
		u.Samples = 3
		require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{Kind: kind, Message: "m", StartedAt: at.Add(-time.Second), FinishedAt: at, Usage: u})))
	}
	usage := func(framework, device int64, active, unknown, wall int) berth.Usage {
		s := func(n int) berth.Duration { return berth.Duration(n) * berth.Duration(time.Second) }

		return berth.Usage{FrameworkPeakBytes: framework * mib, DevicePeakBytes: device * mib, DeviceActive: s(active), DeviceUnknown: s(unknown), Wall: s(wall)}
	}
	recent := func() []berth.RecentUsage {
		t.Helper()

		got, err := b.store.RecentUsage(t.Context(), key)
		require.NoError(t, err)

		return got
	}

	run("", berth.FailureOK, usage(0, 0, 0, 0, 10))
	require.Empty(t, recent(), "cores are no GPU")

	run("GPU-1", berth.FailureUserError, usage(900, 990, 9, 0, 10))
	require.Empty(t, recent(), "it failed")

	run("GPU-1", berth.FailureOK, usage(0, 950, 0, 0, 10))
	require.Equal(t, []berth.RecentUsage{{Class: "NVIDIA H200"}}, recent(), "it has no shim, and its GPU no GPM")

	run("GPU-1", berth.FailureOK, usage(168, 910, 4, 1, 10))

	timed := usage(144, 878, 5, 0, 10)
	timed.Steps, timed.StepTime = 100, berth.Duration(12*time.Millisecond)
	timed.DevicePhases = berth.Phases{StartBytes: 600 * mib, TrainingBytes: 878 * mib}
	run("GPU-1", berth.FailureOK, timed)
	run("GPU-1", berth.FailureOK, usage(144, 878, 5, 0, 10))
	require.Equal(t, []berth.RecentUsage{{
		Class: "NVIDIA H200", FrameworkPeakBytes: 168 * mib, DevicePeakBytes: 910 * mib, HeldMilli: 500,
		StepTime: timed.StepTime, Phases: timed.DevicePhases,
	}}, recent())

	for range 20 {
		run("GPU-1", berth.FailureOK, usage(100, 800, 8, 0, 10))
	}

	require.Equal(t, []berth.RecentUsage{{Class: "NVIDIA H200", FrameworkPeakBytes: 100 * mib, DevicePeakBytes: 800 * mib, HeldMilli: 800}}, recent(), "the others are older")
}
