package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The newest successful attempts on a class count: the framework's largest own count with
// the driver's value for that attempt, and the part of the runs on the GPU with measured
// activity. Failed runs, runs on cores, and older ones do not count.
func TestRecentUsage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1")

	second := 0
	run := func(device string, kind berth.FailureKind, u berth.Usage) (recent []berth.RecentUsage) {
		t.Helper()

		r := b.request(t, gib)
		b.placeOn(t, r, device)

		second++
		at := hourAgo.Add(time.Duration(second) * time.Second)
		u.Samples = 3
		b.finish(t, r, berth.Outcome{Kind: kind, StartedAt: at.Add(-time.Second), FinishedAt: at, Usage: u})

		recent, err := b.store.RecentUsage(t.Context(), r.ShapeKey)
		require.NoError(t, err)

		return recent
	}
	usage := func(framework, device int64, active, unknown int) berth.Usage {
		s := func(n int) berth.Duration { return berth.Duration(n) * berth.Duration(time.Second) }

		return berth.Usage{FrameworkPeakBytes: framework * mib, DevicePeakBytes: device * mib, DeviceActive: s(active), DeviceUnknown: s(unknown), Wall: s(10)}
	}

	require.Empty(t, run("", berth.FailureOK, usage(0, 0, 0, 0)), "cores are no GPU")
	require.Empty(t, run("GPU-1", berth.FailureUserError, usage(900, 990, 9, 0)), "it failed")
	require.Equal(t, []berth.RecentUsage{{Class: h200}}, run("GPU-1", berth.FailureOK, usage(0, 950, 0, 0)), "it has no shim, and its GPU no GPM")

	run("GPU-1", berth.FailureOK, usage(168, 910, 4, 1))

	timed := usage(144, 878, 5, 0)
	timed.Steps, timed.StepTime = 100, berth.Duration(12*time.Millisecond)
	timed.DevicePhases = berth.Phases{StartBytes: 600 * mib, TrainingBytes: 878 * mib}
	run("GPU-1", berth.FailureOK, timed)
	require.Equal(t, []berth.RecentUsage{{
		Class: h200, FrameworkPeakBytes: 168 * mib, HeldMilli: 500,
		StepTime: timed.StepTime, Phases: timed.DevicePhases,
	}}, run("GPU-1", berth.FailureOK, usage(144, 878, 5, 0)))

	for range 19 {
		run("GPU-1", berth.FailureOK, usage(100, 800, 8, 0))
	}

	require.Equal(t, []berth.RecentUsage{{Class: h200, FrameworkPeakBytes: 100 * mib, HeldMilli: 800}},
		run("GPU-1", berth.FailureOK, usage(100, 800, 8, 0)), "the others are older")
}
