package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

// What an attempt used teaches the class of device that it ran on, and no other; a result
// that is committed twice teaches once.
func TestFinishAttempt_TeachesItsClass(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1")

	first := b.request(t, 4*gib)
	b.runs(t, first, berth.FailureOK, 175*mib)
	b.finish(t, first, berth.Outcome{Kind: berth.FailureOK, Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 9, Wall: berth.Duration(time.Minute)}})

	onGPU := b.request(t, 4*gib)
	b.placeOn(t, onGPU, "GPU-1")
	b.finish(t, onGPU, berth.Outcome{Kind: berth.FailureOK, Usage: berth.Usage{
		MemoryPeakBytes: 2 * gib, DevicePeakBytes: 910 * mib, Samples: 9, DeviceSamples: 9, Wall: berth.Duration(time.Minute),
		DeviceActivity: berth.DeviceActivity{SMMilli: 40, DRAMMilli: 14, TensorMilli: 6}, DeviceActive: berth.Duration(time.Minute / 2),
	}})

	known := b.footprints(t, first.ShapeKey)
	require.Len(t, known, 2)

	cpu, gpu := known.Of(berth.ClassCPU), known.Of(h200)
	require.Equal(t, []int64{175 * mib, 0, 1}, []int64{cpu.MemoryPeakBytes, cpu.DevicePeakBytes, int64(cpu.Samples)})
	require.Equal(t, []int64{2 * gib, 910 * mib, 1}, []int64{gpu.MemoryPeakBytes, gpu.DevicePeakBytes, int64(gpu.Samples)})
	require.Equal(t, berth.DeviceActivity{SMMilli: 20, DRAMMilli: 7, TensorMilli: 3}, gpu.DeviceActivity)
	require.Nil(t, known.Of("NVIDIA A30"))

	all, err := b.store.ListFootprints(t.Context(), "", 1)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []berth.Footprint{*cpu, *gpu}, all[0].Footprints)

	found, err := b.store.FindFootprint(t.Context(), first.ShapeKey[:5])
	require.NoError(t, err)
	require.Equal(t, all[0], found)

	require.NoError(t, b.store.ForgetFootprint(t.Context(), first.ShapeKey))
	require.Empty(t, b.footprints(t, first.ShapeKey))
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.ForgetFootprint(t.Context(), first.ShapeKey)))
}

// The memory of a training attempt on its GPU teaches its shape, and its lease follows: to
// the siblings' reservation, at most to its container's limit and the GPU's free memory.
func TestMeasureRunning(t *testing.T) {
	t.Parallel()

	const shared = h200 + " (MPS)"

	b := setup(t)
	b.register(t, "GPU-1")

	reserved := func() int64 { return b.first(t).Devices[0].ReservedBytes }
	place := func(r berth.PlacementRequest, bytes int64) berth.PlacementStatus {
		r.Demand.DeviceBytes = bytes

		return b.placeAs(t, r, berth.Placement{HostID: b.host.ID, DeviceID: "GPU-1", Class: shared, Demand: r.Demand})
	}

	first, other := b.request(t, gib), b.request(t, gib)
	token := place(first, 50*gib).Token

	fenced := func() {
		_, err := b.store.MeasureRunning(t.Context(), first.AttemptID, token, berth.Usage{DevicePeakBytes: gib}, 50*gib)
		require.Equal(t, berth.KindFenced, berth.KindOf(err))
	}
	measure := func(bytes int64) int64 {
		held, err := b.store.MeasureRunning(t.Context(), first.AttemptID, token, berth.Usage{DevicePeakBytes: bytes}, 50*gib)
		require.NoError(t, err)

		return held
	}

	fenced() // it does not run yet
	require.NoError(t, b.store.AttemptRunning(t.Context(), first.AttemptID, token, "c", time.Now()))
	require.Equal(t, map[string]bool{first.ShapeKey: true}, b.queue(t).OnGPUs, "it has just begun")
	require.Equal(t, int64(12*gib), measure(10*gib), "20 % more")
	require.Equal(t, int64(12*gib), reserved())

	known := b.footprints(t, first.ShapeKey).Of(shared)
	require.Equal(t, berth.FootprintPartial, known.Source)
	require.Equal(t, []int64{10 * gib, 0}, []int64{known.DevicePeakBytes, int64(known.Samples)})

	place(other, 80*gib)
	require.Equal(t, int64(20*gib), measure(20*gib), "what is there beside the other")
	require.Equal(t, int64(100*gib), reserved())

	b.end(t, other)
	require.Equal(t, int64(50*gib), measure(45*gib), "what its container may take")

	b.finish(t, first, berth.Outcome{Kind: berth.FailureOK})
	require.Zero(t, reserved())
	fenced()
}

// An attempt teaches the shape that it was placed for, whatever its trial's is.
func TestMeasureRunning_OfItsOwnShape(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1")
	b.exec(t, "INSERT INTO shapes (key, shape) VALUES ('own', '{}')")

	r := b.next(t, gib)
	trials := r.ShapeKey
	r.ShapeKey, r.Demand.DeviceBytes = "own", 50*gib

	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	token := b.placeAs(t, r, berth.Placement{HostID: b.host.ID, DeviceID: "GPU-1", Class: h200 + " (MPS)", Demand: r.Demand}).Token

	who, err := b.store.Assignee(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, []string{"own", trials}, []string{who.Attempt.ShapeKey, who.Trial.ShapeKey})

	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, token, "c", time.Now()))
	_, err = b.store.MeasureRunning(t.Context(), r.AttemptID, token, berth.Usage{DevicePeakBytes: gib}, 50*gib)
	require.NoError(t, err)
	require.NotEmpty(t, b.footprints(t, "own"))
	require.Empty(t, b.footprints(t, trials))
}

// A program that used none of its GPU ran on cores. Its attempt teaches its
// need on cores, and that it needs no GPU.
func TestFinishAttempt_ThatNeedsNoGPU(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1")
	b.host.State = berth.HostReady

	run := func(deviceSamples int) (known berth.Footprints, demands berth.Demands) {
		t.Helper()

		r := b.request(t, 4*gib)
		r.Demand.DeviceBytes, r.Demand.ExclusiveDevice = 2*gib, true
		b.placeAs(t, r, berth.Placement{HostID: b.host.ID, DeviceID: "GPU-1", Class: h200, Demand: r.Demand})
		b.finish(t, r, berth.Outcome{
			Kind: berth.FailureOK, Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 9, DeviceSamples: deviceSamples, Wall: berth.Duration(time.Minute)},
		})

		known = b.footprints(t, r.ShapeKey)
		demands, ok := memory.Sizes(memory.Ask{Resources: berth.Resources{Device: berth.DeviceAuto}}, known, []berth.Host{b.host})
		require.True(t, ok)

		return known, demands
	}

	known, demands := run(0)
	require.Len(t, known, 1)
	require.Zero(t, known.Of(h200).Samples, "nobody could see what it held")
	require.True(t, demands[h200].ExclusiveDevice, "so it goes on being alone")

	known, demands = run(9)
	require.Equal(t, 1, known.Of(h200).Samples)
	require.Equal(t, int64(gib), known.Of(berth.ClassCPU).MemoryPeakBytes)
	require.Equal(t, 1, known.Of(berth.ClassCPU).Samples)
	require.Equal(t, []berth.DeviceClass{berth.ClassCPU}, demands.Classes())
	require.Equal(t, int64(1136*mib), demands[berth.ClassCPU].MemoryBytes)
}

// The ledger keeps what a trial ran out of until three of its siblings needed less, who
// learn of it at once while they wait.
func TestFinishAttempt_AnOutlierDoesNotHoldTheShape(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, 4*gib), berth.FailureOK, 175*mib)

	sibling := b.request(t, 256*mib) // waits all the time
	b.runs(t, b.request(t, 256*mib), berth.FailureHostOOM, 256*mib)
	require.Equal(t, int64(768*mib), b.waiting(t)[sibling.AttemptID])

	for i := range 3 {
		f := b.footprints(t, sibling.ShapeKey).Of(berth.ClassCPU)
		require.Equal(t, []int64{256 * mib, int64(i)}, []int64{f.MemoryFloorBytes, int64(f.FloorPassed)})
		b.runs(t, b.request(t, gib), berth.FailureOK, 175*mib)
	}

	require.Equal(t, int64(224*mib), b.waiting(t)[sibling.AttemptID])
	require.Zero(t, b.footprints(t, sibling.ShapeKey).Of(berth.ClassCPU).MemoryFloorBytes)
}
