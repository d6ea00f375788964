package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

const mib = memory.MiB

// drawFootprint draws one whose peak was measured.
func drawFootprint(t *rapid.T) berth.Footprint {
	return berth.Footprint{
		Source: rapid.SampledFrom([]berth.FootprintSource{
			berth.FootprintFull, berth.FootprintShort, berth.FootprintPartial, berth.FootprintRaised,
		}).Draw(t, "source"),
		Samples:          rapid.IntRange(0, 5).Draw(t, "samples"),
		MemoryPeakBytes:  rapid.Int64Range(1, 1<<40).Draw(t, "peak"),
		MemoryFloorBytes: rapid.SampledFrom([]int64{0, 1, 512 * mib, 3 << 30}).Draw(t, "floor"),
		DevicePeakBytes:  rapid.Int64Range(1, 1<<40).Draw(t, "device peak"),
		CPUMilli:         rapid.Int64Range(0, 64_000).Draw(t, "CPU"),
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		footprint berth.Footprint
		want      int64 // MiB
	}{
		"nothing measured":         {berth.Footprint{}, 0},
		"64 MiB more":              {berth.Footprint{MemoryPeakBytes: 250 * mib, Samples: 1}, 320},
		"48 than a whole run":      {berth.Footprint{MemoryPeakBytes: 250 * mib, Samples: 1, Source: berth.FootprintFull}, 304},
		"10 %":                     {berth.Footprint{MemoryPeakBytes: 2000 * mib, Samples: 1}, 2208},
		"5 % from three samples":   {berth.Footprint{MemoryPeakBytes: 2000 * mib, Samples: 3}, 2112},
		"20 % after a short probe": {berth.Footprint{MemoryPeakBytes: 2000 * mib, Samples: 3, Source: berth.FootprintShort}, 2400},
		"20 % of a partial run":    {berth.Footprint{MemoryPeakBytes: 2000 * mib, Samples: 1, Source: berth.FootprintPartial}, 2400},
		"above what ran out":       {berth.Footprint{MemoryPeakBytes: 1000 * mib, Samples: 1, MemoryFloorBytes: 1152 * mib}, 1728},
		"one step at least":        {berth.Footprint{MemoryPeakBytes: 20 * mib, Samples: 1, MemoryFloorBytes: 128 * mib}, 608},
		"four times the need":      {berth.Footprint{MemoryPeakBytes: 175 * mib, Samples: 1, MemoryFloorBytes: 20480 * mib}, 960},
		"only ran out":             {berth.Footprint{MemoryFloorBytes: 2048 * mib}, 3072},
		"not measured throughout":  {berth.Footprint{MemoryPeakBytes: 100 * mib, Source: berth.FootprintPartial, MemoryFloorBytes: 2048 * mib}, 3072},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, c.want*mib, memory.Reserve(c.footprint))
		})
	}
}

func TestReserve_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		f := drawFootprint(t)
		got := memory.Reserve(f)

		require.Zero(t, got%(16*mib))
		require.GreaterOrEqual(t, got, f.MemoryPeakBytes+48*mib)

		if f.Samples == 0 {
			require.Greater(t, got, f.MemoryFloorBytes)
		}

		calm := f
		calm.MemoryFloorBytes = 0
		require.LessOrEqual(t, memory.Reserve(calm), got, "monotone in the floor")

		larger := f
		larger.MemoryPeakBytes += rapid.Int64Range(0, 1<<32).Draw(t, "more")
		require.GreaterOrEqual(t, memory.Reserve(larger), got, "monotone in the peak")

		surer := f
		surer.Samples++
		require.LessOrEqual(t, memory.Reserve(surer), got, "samples narrow the margin")

		surer.Source = berth.FootprintFull
		require.LessOrEqual(t, memory.Reserve(surer), memory.Reserve(f), "a whole run is never trusted less")

		device := memory.ReserveDevice(f)
		require.Zero(t, device%(16*mib))
		require.GreaterOrEqual(t, device, f.DevicePeakBytes+128*mib)

		if f.Source != berth.FootprintFull {
			require.GreaterOrEqual(t, got, f.MemoryPeakBytes+64*mib)
			require.GreaterOrEqual(t, device, f.DevicePeakBytes+256*mib)
		}
	})
}

func TestReserveCPU(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ measured, threadCap, want int64 }{
		{0, 1000, 1000},    // never measured with cores to spare
		{10, 1000, 100},    // never less than a tenth
		{500, 1000, 550},   // 10 % more
		{501, 1000, 600},   // in steps of 0.05
		{990, 1000, 1000},  // never above the cap
		{5000, 2000, 2000}, // nor far above
		{40, 50, 50},
	} {
		require.Equal(t, c.want, memory.ReserveCPU(berth.Footprint{CPUMilli: c.measured}, c.threadCap), "%+v", c)
	}

	rapid.Check(t, func(t *rapid.T) {
		f, threadCap := drawFootprint(t), rapid.Int64Range(1, 64_000).Draw(t, "cap")
		got := memory.ReserveCPU(f, threadCap)

		require.Positive(t, got)
		require.LessOrEqual(t, got, threadCap)
		require.GreaterOrEqual(t, got, min(f.CPUMilli, threadCap))
	})
}

// A machine of 16 cores and 22 GiB runs 16 trials of a shape that is not
// measured; where memory per core is large, or not known, nothing changes.
func TestForProbe(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ capacity, cores, cpuMilli, want int64 }{ // MiB
		{22 << 10, 16, 1000, 1408},
		{22 << 10, 16, 2000, 2816},
		{22 << 10, 2, 1000, 4096},
		{64 << 10, 128, 1000, 1024},
		{2048, 16, 1000, 512},
		{0, 0, 1000, 4096},
		{-1, 0, 1000, 4096},
		{64 << 10, 0, 1000, 4096},
		{16 << 10, 0, 1000, 4096},
		{8 << 10, 0, 1000, 2048},
		{1000, 0, 1000, 192},
		{100, 0, 1000, 64},
	} {
		room := memory.Room{CapacityBytes: c.capacity * mib}
		if c.cores > 0 {
			room.PerCoreBytes = room.CapacityBytes / c.cores
		}

		require.Equal(t, c.want*mib, memory.ForProbe(room, c.cpuMilli), "%+v", c)
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ reserved, peak, want int64 }{
		{256, 0, 768},      // 512 more
		{4096, 4096, 6144}, // half as much again
		{1024, 4000, 5056}, // a quarter over the peak, rounded up
		{1024, 1024, 1536}, // both are the same
		{10000, 0, 15040},  // rounded up to 64
		{64, 100000, 125056},
	} {
		require.Equal(t, c.want*mib, memory.Grow(c.reserved*mib, c.peak*mib), "%+v", c)
	}
}

func TestAfterOOM_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		room := memory.Room{CapacityBytes: rapid.Int64Range(64*mib, 1<<40).Draw(t, "capacity")}
		room.FreeBytes = rapid.Int64Range(0, room.CapacityBytes).Draw(t, "free")
		maxAttempts := rapid.IntRange(1, 10).Draw(t, "max attempts")
		demand := berth.Demand{MemoryBytes: rapid.Int64Range(64*mib, 1<<38).Draw(t, "first"), CPUMilli: 100}

		for ooms := 1; ; ooms++ {
			require.LessOrEqual(t, ooms, maxAttempts, "it ends")

			next, ok := memory.AfterOOM(demand, rapid.Int64Range(0, 1<<40).Draw(t, "peak"), ooms, maxAttempts, room)
			if !ok {
				require.Equal(t, demand, next)

				return
			}

			require.Greater(t, next.MemoryBytes, demand.MemoryBytes)
			require.LessOrEqual(t, next.MemoryBytes, room.CapacityBytes)
			require.Equal(t, ooms == maxAttempts-1, next.Exclusive)
			require.Equal(t, demand.CPUMilli, next.CPUMilli)
			demand = next
		}
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()

	require.False(t, memory.Known(nil))
	require.False(t, memory.Known(&berth.Footprint{MemoryFloorBytes: 1}), "an out-of-memory alone measures nothing")
	require.True(t, memory.Known(&berth.Footprint{Samples: 1}))
}

// seen is one finished attempt.
type seen struct {
	source   berth.FootprintSource
	kind     berth.FailureKind
	usage    berth.Usage
	reserved int64
}

func observe(prior *berth.Footprint, all ...seen) *berth.Footprint {
	for _, s := range all {
		if f, ok := memory.Observe(prior, "key", s.source, s.kind, s.usage, berth.Demand{MemoryBytes: s.reserved}); ok {
			prior = &f
		}
	}

	return prior
}

func usage(peak int64, wall time.Duration, milli int64) berth.Usage {
	return berth.Usage{
		MemoryPeakBytes: peak, Samples: 9, Wall: berth.Duration(wall), CPU: berth.Duration(wall) * berth.Duration(milli) / 1000,
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()

	full := func(u berth.Usage) seen { return seen{berth.FootprintFull, berth.FailureOK, u, 4096 * mib} }
	short := func(u berth.Usage) seen { return seen{berth.FootprintShort, berth.FailureOK, u, 4096 * mib} }
	oom := seen{berth.FootprintFull, berth.FailureHostOOM, usage(1000*mib, time.Second, 100), 1024 * mib}

	require.Equal(t, &berth.Footprint{
		ShapeKey: "key", Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 700 * mib, CPUMilli: 800, Duration: berth.Duration(time.Minute),
	}, observe(nil, full(usage(700*mib, time.Minute, 800))))

	require.Equal(t, &berth.Footprint{
		ShapeKey: "key", Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: 900 * mib, CPUMilli: 800, Duration: berth.Duration(2 * time.Minute),
	}, observe(nil, full(usage(700*mib, time.Minute, 800)), full(usage(900*mib, 3*time.Minute, 500)), full(usage(1, 2*time.Minute, 10))))

	require.Equal(t, &berth.Footprint{
		ShapeKey: "key", Source: berth.FootprintRaised, MemoryFloorBytes: 1024 * mib,
	}, observe(nil, oom))

	require.Equal(t, &berth.Footprint{
		ShapeKey: "key", Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 1500 * mib, MemoryFloorBytes: 1024 * mib, FloorPassed: 1,
		CPUMilli: 800, Duration: berth.Duration(time.Minute),
	}, observe(nil, oom, full(usage(1500*mib, time.Minute, 800))))

	require.Equal(t, &berth.Footprint{
		ShapeKey: "key", Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: 500 * mib, CPUMilli: 800, Duration: berth.Duration(time.Minute),
	}, observe(nil, oom, full(usage(500*mib, time.Minute, 800)), full(usage(500*mib, time.Minute, 800)), full(usage(500*mib, time.Minute, 800))))

	probed := observe(nil, short(usage(500*mib, time.Second, 800)))
	require.Equal(t, berth.FootprintShort, probed.Source)

	probed = observe(probed, full(usage(600*mib, time.Hour, 800)), short(usage(400*mib, time.Second, 800)))
	require.Equal(t, berth.FootprintFull, probed.Source, "a short run does not replace a full one")
	require.Equal(t, berth.Duration(time.Hour), probed.Duration, "the mean is of whole runs")
	require.Equal(t, int64(600*mib), probed.MemoryPeakBytes)
}

func TestObserve_ContendedCPUCountsForNothing(t *testing.T) {
	t.Parallel()

	crowded := usage(700*mib, time.Minute, 200)
	crowded.CPUContended = true

	f := observe(nil, seen{berth.FootprintFull, berth.FailureOK, crowded, 0})
	require.Zero(t, f.CPUMilli)

	f = observe(f, seen{berth.FootprintFull, berth.FailureOK, usage(700*mib, time.Minute, 900), 0}, seen{berth.FootprintFull, berth.FailureOK, crowded, 0})
	require.Equal(t, int64(900), f.CPUMilli)

	instant := usage(1, 0, 0)
	require.Zero(t, observe(nil, seen{berth.FootprintFull, berth.FailureOK, instant, 0}).CPUMilli, "no time, no mean")
}

func TestObserve_OtherEndsTeachNothing(t *testing.T) {
	t.Parallel()

	teaching := map[berth.FailureKind]bool{
		berth.FailureOK: true, berth.FailureNoResult: true, berth.FailureNotFinite: true, berth.FailureHostOOM: true,
		berth.FailurePruned: true,
	}

	prior := berth.Footprint{ShapeKey: "key", Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: mib, CPUMilli: 1}
	reserved := berth.Demand{MemoryBytes: 704 * mib}

	for _, kind := range []berth.FailureKind{
		berth.FailureOK, berth.FailureHostOOM, berth.FailureDeviceOOM, berth.FailureDeviceBusy, berth.FailureTooBig,
		berth.FailureUserError, berth.FailureBadConfig, berth.FailureCrashed, berth.FailureKilled, berth.FailurePreempted,
		berth.FailureTimedOut, berth.FailureNoResult, berth.FailureNotFinite, berth.FailureNoDevice, berth.FailureImageMissing,
		berth.FailureBadCommand, berth.FailureNeighbourFault, berth.FailureInfra, berth.FailureCanceled, berth.FailurePruned,
	} {
		u := usage(700*mib, time.Minute, 800)

		_, ok := memory.Observe(nil, "key", berth.FootprintFull, kind, u, reserved)
		require.Equal(t, teaching[kind], ok, "%s", kind)

		f, ok := memory.Observe(&prior, "key", berth.FootprintFull, kind, u, reserved)
		require.True(t, ok)
		require.Equal(t, teaching[kind], f != prior, "%s", kind)
	}

	unmeasured := usage(0, time.Minute, 0)
	unmeasured.Samples = 0

	_, ok := memory.Observe(nil, "key", berth.FootprintFull, berth.FailureOK, unmeasured, reserved)
	require.False(t, ok, "an attempt that was not measured has no footprint")
}

func TestObserve_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		var f *berth.Footprint

		for _, s := range rapid.SliceOfN(drawSeen(), 1, 8).Draw(t, "attempts") {
			before := f
			if f = observe(f, s); before == nil || f == nil {
				continue
			}

			require.GreaterOrEqual(t, f.MemoryPeakBytes, before.MemoryPeakBytes)
			require.GreaterOrEqual(t, f.DevicePeakBytes, before.DevicePeakBytes)
			require.GreaterOrEqual(t, f.CPUMilli, before.CPUMilli)
			require.GreaterOrEqual(t, f.Samples, before.Samples)
		}
	})
}

func drawSeen() *rapid.Generator[seen] {
	return rapid.Custom(func(t *rapid.T) seen {
		u := usage(rapid.Int64Range(0, 1<<36).Draw(t, "peak"), time.Duration(rapid.IntRange(0, 100).Draw(t, "wall"))*time.Minute,
			rapid.Int64Range(0, 4000).Draw(t, "milli"))
		u.Samples = rapid.IntRange(0, 2).Draw(t, "samples")
		u.DevicePeakBytes = rapid.Int64Range(0, 1<<40).Draw(t, "device peak")
		u.CPUContended = rapid.Bool().Draw(t, "contended")
		u.Unseen = berth.Duration(rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "unseen"))
		u.OOMKills = rapid.IntRange(0, 1).Draw(t, "kills")

		return seen{
			source:   rapid.SampledFrom([]berth.FootprintSource{berth.FootprintFull, berth.FootprintShort, berth.FootprintPartial}).Draw(t, "source"),
			kind:     rapid.SampledFrom([]berth.FailureKind{berth.FailureOK, berth.FailureHostOOM, berth.FailureNoResult, berth.FailureCanceled}).Draw(t, "kind"),
			usage:    u,
			reserved: rapid.Int64Range(1, 1<<36).Draw(t, "reserved"),
		}
	})
}

// A shape's activity is the mean of its runs. On a GPU that others kept full it got
// less than it needs, and in a moment nothing is learnt.
func TestObserve_Activity(t *testing.T) {
	t.Parallel()

	var f *berth.Footprint

	run := func(sm, dram int64, active time.Duration, contended bool) berth.DeviceActivity {
		t.Helper()

		next, ok := memory.Observe(f, "s", berth.FootprintFull, berth.FailureOK, berth.Usage{
			Samples: 9, MemoryPeakBytes: gib, DevicePeakBytes: gib, DeviceSamples: 9, Wall: berth.Duration(time.Minute),
			DeviceActivity: berth.DeviceActivity{SMMilli: sm, DRAMMilli: dram}, DeviceActive: berth.Duration(active), DeviceContended: contended,
		}, berth.Demand{DeviceBytes: 2 * gib})
		require.True(t, ok)

		f = &next

		return f.DeviceActivity
	}

	require.Zero(t, run(900, 0, time.Second, false))
	require.Equal(t, berth.DeviceActivity{SMMilli: 200, DRAMMilli: 40}, run(200, 40, time.Minute, true), "at least that")
	require.Equal(t, berth.DeviceActivity{SMMilli: 200, DRAMMilli: 40}, run(100, 20, time.Minute, true))
	require.Equal(t, berth.DeviceActivity{SMMilli: 275, DRAMMilli: 35}, run(1000, 40, time.Minute/2, false), "a quarter of the way to half of it")

	demands, ok := memory.Sizes(memory.Ask{Resources: berth.Resources{Device: berth.DeviceGPU}}, berth.Footprints{big: *f}, []berth.Host{gpuHost(card(big, 80))})
	require.True(t, ok)
	require.Equal(t, int64(275), demands[big].DeviceActivity)

	require.Equal(t, berth.DeviceActivity{SMMilli: 275, DRAMMilli: 35}, run(0, 0, 0, false), "what nobody could tell changes nothing")
}
