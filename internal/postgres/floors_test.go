package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/memory"
)

const mib = 1 << 20

// waiting is how much memory the requests that wait would get, by attempt.
func (b *bundle) waiting(t *testing.T) map[string]int64 {
	t.Helper()

	queue, err := b.store.Queue(t.Context(), 100)
	require.NoError(t, err)

	sizes := make(map[string]int64, len(queue.Waiting))

	for _, r := range queue.Waiting {
		known := queue.Footprints[r.ShapeKey].Of(berth.ClassCPU)
		demand, _ := memory.Size(memory.Ask{SweepID: r.SweepID, Resources: r.Resources, Last: r.Last}, known, queue.Hosts)
		sizes[r.AttemptID] = demand.MemoryBytes
	}

	return sizes
}

// sized is the bundle with a sweep whose user wrote these sizes.
func (b *bundle) sized(t *testing.T, memory, cpuMilli int64) *bundle {
	t.Helper()

	other := *b
	other.sweep, other.trial = uuid.NewString(), 0
	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
		ID: other.sweep, ImageDigest: "sha256:x", CreatedBy: "local",
		Spec: berth.Spec{Name: "sized", Resources: berth.Resources{Memory: berth.Size(memory), CPUs: berth.CPUs(cpuMilli)}},
	})
	require.NoError(t, err)

	return &other
}

// ranOut is the newest out-of-memory of a trial that had this many bytes, after
// count such failures.
func ranOut(had int64, count int) *berth.LastOOM {
	return &berth.LastOOM{Demand: berth.Demand{MemoryBytes: had, CPUMilli: 1000}, PeakBytes: had, Count: count, Max: 3}
}

// runs places and ends an attempt with this peak memory.
func (b *bundle) runs(t *testing.T, r berth.PlacementRequest, kind berth.FailureKind, peak int64) {
	t.Helper()

	u := berth.Usage{MemoryPeakBytes: peak, Samples: 9, Wall: berth.Duration(time.Minute)}
	if kind == berth.FailureHostOOM {
		u.OOMKills = 1
	}

	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, b.place(t, r).Token, berth.Outcome{
		Kind: kind, Message: "m", FinishedAt: time.Now(), Usage: u,
	})))
}

// footprint returns a shape's footprint on a host's cores.
func (b *bundle) footprint(t *testing.T, shapeKey string) *berth.Footprint {
	t.Helper()

	known, err := b.store.Footprints(t.Context(), []string{shapeKey})
	require.NoError(t, err)

	return known[shapeKey].Of(berth.ClassCPU)
}

// What an attempt used teaches the class of device that it ran on, and no other.
func TestFinishAttempt_TeachesItsClass(t *testing.T) {
	t.Parallel()

	const h200 = "NVIDIA H200"

	b := setup(t)
	b.host.Devices = []berth.Device{{
		ID: "GPU-1", Model: h200, Mode: berth.SharingTimeSlicing, MemoryBytes: 100 * gib, FreeBytes: 100 * gib, MaxContexts: 48,
	}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	first := b.request(t, 4*gib)
	b.runs(t, first, berth.FailureOK, 175*mib)

	onGPU := b.request(t, 4*gib)
	onGPU.Demand.DeviceBytes = 2 * gib
	_, err := b.store.Place(t.Context(), map[string]berth.Placement{
		onGPU.AttemptID: {HostID: b.host.ID, DeviceID: "GPU-1", Class: h200, Demand: onGPU.Demand},
	})
	require.NoError(t, err)

	status, err := b.store.PlacementStatus(t.Context(), onGPU.AttemptID)
	require.NoError(t, err)
	require.NoError(t, b.store.FinishAttempt(t.Context(), result(onGPU, status.Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now(),
		Usage: berth.Usage{
			MemoryPeakBytes: 2 * gib, DevicePeakBytes: 910 * mib, Samples: 9, DeviceSamples: 9, Wall: berth.Duration(time.Minute),
			DeviceActivity: berth.DeviceActivity{SMMilli: 40, DRAMMilli: 14, TensorMilli: 6}, DeviceActive: berth.Duration(time.Minute / 2),
		},
	})))

	known, err := b.store.Footprints(t.Context(), []string{first.ShapeKey})
	require.NoError(t, err)
	require.Len(t, known[first.ShapeKey], 2)

	cpu, gpu := known[first.ShapeKey].Of(berth.ClassCPU), known[first.ShapeKey].Of(h200)
	require.Equal(t, []int64{175 * mib, 0, 1}, []int64{cpu.MemoryPeakBytes, cpu.DevicePeakBytes, int64(cpu.Samples)})
	require.Equal(t, []int64{2 * gib, 910 * mib, 1}, []int64{gpu.MemoryPeakBytes, gpu.DevicePeakBytes, int64(gpu.Samples)})
	require.Equal(t, berth.DeviceActivity{SMMilli: 20, DRAMMilli: 7, TensorMilli: 3}, gpu.DeviceActivity)
	require.Nil(t, known[first.ShapeKey].Of("NVIDIA A30"))

	all, err := b.store.ListFootprints(t.Context(), "", 1)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []berth.Footprint{*cpu, *gpu}, all[0].Footprints)

	found, err := b.store.FindFootprint(t.Context(), first.ShapeKey[:5])
	require.NoError(t, err)
	require.Equal(t, all[0], found)

	require.NoError(t, b.store.ForgetFootprint(t.Context(), first.ShapeKey))
	known, err = b.store.Footprints(t.Context(), []string{first.ShapeKey})
	require.NoError(t, err)
	require.Empty(t, known)
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.ForgetFootprint(t.Context(), first.ShapeKey)))
}

// The memory of a training attempt on its GPU teaches its shape, and its lease follows: to
// the siblings' reservation, at most to its container's limit and the GPU's free memory.
func TestMeasureRunning(t *testing.T) {
	t.Parallel()

	const shared = "NVIDIA H200 (MPS)"

	b := setup(t)
	b.host.Devices = []berth.Device{{
		ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 100 * gib, FreeBytes: 100 * gib, MPSContexts: 44, MaxContexts: 48,
	}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	reserved := func() int64 {
		hosts, err := b.store.RecentHosts(t.Context())
		require.NoError(t, err)

		return hosts[0].Devices[0].ReservedBytes
	}

	place := func(r berth.PlacementRequest, bytes int64) berth.PlacementStatus {
		r.Demand.DeviceBytes = bytes
		_, err := b.store.Place(t.Context(), map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, DeviceID: "GPU-1", Class: shared, Demand: r.Demand}})
		require.NoError(t, err)

		status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
		require.NoError(t, err)

		return status
	}

	first, other := b.request(t, gib), b.request(t, gib)
	status := place(first, 50*gib)

	measure := func(bytes int64) (int64, error) {
		return b.store.MeasureRunning(t.Context(), first.AttemptID, status.Token, berth.Usage{DevicePeakBytes: bytes}, 50*gib)
	}

	_, err := measure(gib)
	require.Equal(t, berth.KindFenced, berth.KindOf(err), "it does not run yet")
	require.NoError(t, b.store.AttemptRunning(t.Context(), first.AttemptID, status.Token, "c", time.Now()))

	queue, err := b.store.Queue(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{first.ShapeKey: true}, queue.OnGPUs, "it has just begun")

	held, err := measure(10 * gib)
	require.NoError(t, err)
	require.Equal(t, int64(12*gib), held, "20 % more")
	require.Equal(t, int64(12*gib), reserved())

	known, err := b.store.Footprints(t.Context(), []string{first.ShapeKey})
	require.NoError(t, err)
	require.Equal(t, berth.FootprintPartial, known[first.ShapeKey].Of(shared).Source)
	require.Equal(t, []int64{10 * gib, 0}, []int64{known[first.ShapeKey].Of(shared).DevicePeakBytes, int64(known[first.ShapeKey].Of(shared).Samples)})

	place(other, 80*gib)

	held, err = measure(20 * gib)
	require.NoError(t, err)
	require.Equal(t, int64(20*gib), held, "what is there beside the other")
	require.Equal(t, int64(100*gib), reserved())

	b.end(t, other)

	held, err = measure(45 * gib)
	require.NoError(t, err)
	require.Equal(t, int64(50*gib), held, "what its container may take")

	require.NoError(t, b.store.FinishAttempt(t.Context(), result(first, status.Token, berth.Outcome{Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now()})))
	require.Zero(t, reserved())

	_, err = measure(gib)
	require.Equal(t, berth.KindFenced, berth.KindOf(err))
}

// A program that used none of its GPU ran on cores. Its attempt teaches its
// need on cores, and that it needs no GPU.
func TestFinishAttempt_ThatNeedsNoGPU(t *testing.T) {
	t.Parallel()

	const h200 = "NVIDIA H200"

	b := setup(t)
	b.host.Devices = []berth.Device{{
		ID: "GPU-1", Model: h200, Mode: berth.SharingTimeSlicing, MemoryBytes: 100 * gib, FreeBytes: 100 * gib, MaxContexts: 48,
	}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	run := func(deviceSamples int) berth.Footprints {
		t.Helper()

		r := b.request(t, 4*gib)
		r.Demand.DeviceBytes, r.Demand.ExclusiveDevice = 2*gib, true
		_, err := b.store.Place(t.Context(), map[string]berth.Placement{
			r.AttemptID: {HostID: b.host.ID, DeviceID: "GPU-1", Class: h200, Demand: r.Demand},
		})
		require.NoError(t, err)

		status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
		require.NoError(t, err)
		require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
			Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now(),
			Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 9, DeviceSamples: deviceSamples, Wall: berth.Duration(time.Minute)},
		})))

		known, err := b.store.Footprints(t.Context(), []string{r.ShapeKey})
		require.NoError(t, err)

		return known[r.ShapeKey]
	}
	auto := memory.Ask{Resources: berth.Resources{Device: berth.DeviceAuto}}
	b.host.State = berth.HostReady

	known := run(0)
	require.Len(t, known, 1)
	require.Zero(t, known.Of(h200).Samples, "nobody could see what it held")

	demands, ok := memory.Sizes(auto, known, []berth.Host{b.host})
	require.True(t, ok)
	require.True(t, demands[h200].ExclusiveDevice, "so it goes on being alone")

	known = run(9)
	require.Equal(t, 1, known.Of(h200).Samples)
	require.Equal(t, int64(gib), known.Of(berth.ClassCPU).MemoryPeakBytes)
	require.Equal(t, 1, known.Of(berth.ClassCPU).Samples)

	demands, ok = memory.Sizes(auto, known, []berth.Host{b.host})
	require.True(t, ok)
	require.Equal(t, []berth.DeviceClass{berth.ClassCPU}, demands.Classes())
	require.Equal(t, int64(1152*mib), demands[berth.ClassCPU].MemoryBytes)

	demands, ok = memory.Sizes(memory.Ask{Resources: berth.Resources{Device: berth.DeviceGPU}}, known, []berth.Host{b.host})
	require.True(t, ok)
	require.Equal(t, []berth.DeviceClass{h200}, demands.Classes(), "the sweep insists")
}

// One trial that can never fit leaves the others of its shape as they were.
func TestFinishAttempt_AnOutlierDoesNotHoldTheShape(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, 4*gib), berth.FailureOK, 175*mib)

	sibling := b.request(t, 256*mib) // waits all the time
	outlier := b.request(t, 256*mib)
	b.runs(t, outlier, berth.FailureHostOOM, 256*mib)
	require.Equal(t, int64(768*mib), b.waiting(t)[sibling.AttemptID], "it may need as much: they learn at once")

	again := func(size int64, alone bool) {
		outlier.AttemptID, outlier.Number = uuid.NewString(), outlier.Number+1
		outlier.Demand.MemoryBytes, outlier.Demand.Exclusive = size, alone // the decision's demand

		_, err := b.store.RequestPlacement(t.Context(), outlier)
		require.NoError(t, err)
		b.runs(t, outlier, berth.FailureHostOOM, size)
	}
	again(768*mib, false)
	require.Equal(t, int64(gib), b.waiting(t)[sibling.AttemptID], "four times what they were measured to need, and no more")
	again(8*gib, true)
	require.Equal(t, int64(gib), b.waiting(t)[sibling.AttemptID], "the whole machine was not enough for that one trial")

	for range 3 {
		b.runs(t, b.request(t, gib), berth.FailureOK, 175*mib)
	}

	require.Equal(t, int64(256*mib), b.waiting(t)[sibling.AttemptID], "and those that still wait ask for their own size again")

	f := b.footprint(t, sibling.ShapeKey)
	require.Zero(t, f.MemoryFloorBytes)
	require.Equal(t, int64(175*mib), f.MemoryPeakBytes)
}

func TestFinishAttempt_CountsRunsSinceTheFloor(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, gib), berth.FailureHostOOM, gib)
	b.runs(t, b.request(t, 2*gib), berth.FailureOK, 500*mib)

	all, err := b.store.ListFootprints(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, int64(gib), all[0].Footprints[0].MemoryFloorBytes)
	require.Equal(t, 1, all[0].Footprints[0].FloorPassed)
}

// The memory peaks after the part that the probe measured: waiting siblings ask
// for the need of the first of them.
func TestFinishAttempt_AMeasuredRunResizesWhatWaits(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, 4*gib), berth.FailureOK, gib)

	sibling := b.request(t, 1152*mib)
	retry := b.request(t, 1152*mib)
	b.runs(t, retry, berth.FailureHostOOM, 1152*mib)
	retry.Last = ranOut(1152*mib, 1)
	retry = b.again(t, retry, 2)
	late := b.request(t, 6*gib)
	late.Last = ranOut(4*gib, 1)
	late = b.again(t, late, 2)

	require.Equal(t, int64(6*gib), b.waiting(t)[late.AttemptID])
	b.runs(t, b.request(t, 6*gib), berth.FailureOK, 3*gib)
	require.Equal(t, map[string]int64{
		sibling.AttemptID: 3392 * mib,
		retry.AttemptID:   3392 * mib,
		late.AttemptID:    6 * gib, // it knows better: its trial ran out of more
	}, b.waiting(t))
}

// The user's value stands, whatever happens to other trials of the shape.
func TestFinishAttempt_LeavesTheUsersSize(t *testing.T) {
	t.Parallel()

	b := setup(t)
	sized := b.sized(t, gib, 1000).request(t, gib)
	auto := b.request(t, gib)
	b.runs(t, b.request(t, gib), berth.FailureHostOOM, gib)

	require.Equal(t, map[string]int64{sized.AttemptID: gib, auto.AttemptID: 2 * gib}, b.waiting(t), "the other asks for what an unmeasured shape gets")
}

// Siblings learn no size from a run that was measured in part.
func TestFinishAttempt_RunWithAGap(t *testing.T) {
	t.Parallel()

	b := setup(t)
	sibling := b.request(t, 2*gib)
	r := b.request(t, 2*gib)
	done := result(r, b.place(t, r).Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now(),
		Usage: berth.Usage{MemoryPeakBytes: 155 * mib, Samples: 9, Unseen: berth.Duration(time.Minute)},
	})
	done.Source = berth.FootprintPartial
	require.NoError(t, b.store.FinishAttempt(t.Context(), done))
	require.Equal(t, map[string]int64{sibling.AttemptID: 2 * gib}, b.waiting(t))

	f := b.footprint(t, r.ShapeKey)
	require.Equal(t, berth.FootprintPartial, f.Source)
	require.Zero(t, f.Samples)

	attempt, err := b.store.GetAttempt(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.Duration(time.Minute), attempt.Usage.Unseen)
}
