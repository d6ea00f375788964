package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

// always is one interval, for samples of any minutes.
const always = 36500 * 24 * time.Hour

// watch makes a machine of 8 GiB, with a GPU of 8 GiB.
func watch(t *testing.T) *bundle {
	t.Helper()

	b, dev := setup(t), gpu("GPU-1")
	dev.MemoryBytes, dev.FreeBytes = 8*gib, 8*gib
	b.host.Devices = []berth.Device{dev}
	b.register(t)

	return b
}

// look is a worker's report of the machine and its GPU.
func (b *bundle) look(t *testing.T, memory, gpu int64) {
	t.Helper()
	b.touch(t, berth.HostFree{MemoryBytes: memory, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: gpu}}})
}

// onGPU places an attempt for which 1 GiB of the GPU is reserved.
func (b *bundle) onGPU(t *testing.T) (attemptID string, token int64) {
	t.Helper()

	r := b.request(t, gib)
	token = b.placeAs(t, r, berth.Placement{HostID: b.host.ID, DeviceID: "GPU-1", Class: h200, Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000, DeviceBytes: gib}}).Token

	return r.AttemptID, token
}

func (b *bundle) machinePoints(t *testing.T, covered, every time.Duration) []berth.MachinePoint {
	t.Helper()

	all, err := b.store.ListMachine(t.Context(), b.host.ID, covered, every)
	require.NoError(t, err)

	return all
}

// both are the points of the machine and the GPU.
func (b *bundle) both(t *testing.T) (host, device berth.MachinePoint) {
	t.Helper()

	all := b.machinePoints(t, time.Hour, always)
	require.Len(t, all, 2)

	return all[0], all[1]
}

// The store keeps the maximum of a host's samples in an interval, and each GPU beside the
// host.
func TestListMachine(t *testing.T) {
	t.Parallel()

	b := watch(t)
	require.Empty(t, b.machinePoints(t, time.Hour, time.Minute))

	// 1. Nothing runs; programs outside Berth use 1 GiB of the host and 2 of its GPU.
	b.look(t, 7*gib, 6*gib)

	// 2. Two attempts hold places, one of them measured.
	first, token := b.onGPU(t)
	second := b.request(t, 2*gib)
	b.place(t, second)
	require.NoError(t, b.store.PutMemory(t.Context(), first, token, []berth.MemoryPoint{
		{Second: 7, HostBytes: new(int64(999)), DeviceBytes: new(int64(999))},
		{Second: 8, HostBytes: new(int64(4)), DeviceBytes: new(int64(6)), SMMilli: new(int64(250))},
		{Second: 9, HostBytes: new(int64(5))}, // its GPU was not read yet
	}))
	b.look(t, 8*gib, 8*gib)

	// 3. They have ended; the worker does not see the GPU, and so neither knows the free
	// memory.
	b.end(t, berth.PlacementRequest{AttemptID: first, SweepID: b.sweep, TrialID: b.getTrial(t, 1).ID, ShapeKey: second.ShapeKey})
	b.end(t, second)
	b.touch(t, berth.HostFree{Problem: "its disk takes no files", Devices: []berth.DeviceFree{{ID: "GPU-1", Problem: "lost"}}})

	require.Equal(t, []berth.MachinePoint{
		{
			At: time.Unix(0, 0).UTC(), MemoryBytes: 8 * gib, ReservedBytes: 3 * gib, MeasuredBytes: new(int64(5)), OthersBytes: new(int64(gib)),
			CPUMilli: 2000, Attempts: 2,
		},
		{
			At: time.Unix(0, 0).UTC(), DeviceID: "GPU-1", MemoryBytes: 8 * gib, ReservedBytes: gib, MeasuredBytes: new(int64(6)), OthersBytes: new(int64(2 * gib)),
			ActivityMilli: new(int64(250)), Attempts: 1,
		},
	}, b.machinePoints(t, 2*time.Hour, always))

	// An hour ago the host was fuller.
	b.exec(t, `INSERT INTO machine_points (host_id, at, memory_bytes, reserved_bytes, attempts) VALUES ($1, date_trunc('minute', now()) - interval '1 hour', $2, $3, 3)`,
		b.host.ID, int64(8*gib), int64(4*gib))
	require.Equal(t, int64(4*gib), b.machinePoints(t, 2*time.Hour, always)[0].ReservedBytes, "the most")

	apart := b.machinePoints(t, 2*time.Hour, time.Minute)
	require.Equal(t, int64(4*gib), apart[0].ReservedBytes, "each minute apart")
	require.NotEqual(t, int64(4*gib), apart[1].ReservedBytes)

	// Only points older than a week are deleted.
	b.exec(t, "UPDATE machine_points SET at = at - interval '7 days' WHERE attempts = 3")
	b.store.Retain(t.Context(), berth.Retention{}, map[string]error{})
	require.Equal(t, 2, number[int](t, b.pool, "SELECT max(attempts) FROM machine_points"))
}

// The attempts' memory on a GPU does not count as used by others: neither while the worker cannot tell which
// containers are ours, nor where one holds more than its reservation, which FreeBeside gives back only up to
// the reservation.
func TestListMachine_OthersUseNothingOfAttempts(t *testing.T) {
	t.Parallel()

	b := watch(t)
	id, token := b.onGPU(t)
	put := func(second int, bytes int64) {
		t.Helper()
		require.NoError(t, b.store.PutMemory(t.Context(), id, token, []berth.MemoryPoint{{Second: second, HostBytes: new(int64(gib)), DeviceBytes: new(bytes)}}))
	}

	put(1, gib)
	b.touch(t, berth.HostFree{MemoryBytes: 7 * gib, Problem: "Docker does not answer", Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 7 * gib}}})

	host, device := b.both(t)
	require.Nil(t, host.OthersBytes)
	require.Nil(t, device.OthersBytes)
	require.Equal(t, int64(gib), *device.MeasuredBytes)

	put(2, 6*gib) // of the rest, another program uses 1 GiB: 8 - 7 + min(6, 1) are free
	b.look(t, 8*gib, 2*gib)

	_, device = b.both(t)
	require.Equal(t, int64(6*gib), *device.MeasuredBytes)
	require.Equal(t, int64(gib), *device.OthersBytes)
}

// An idle host uses zero, which is known. The use of unmeasured attempts is unknown.
func TestListMachine_IdleIsZero(t *testing.T) {
	t.Parallel()

	b := watch(t)
	b.look(t, 8*gib, 8*gib)

	host, device := b.both(t)
	require.Equal(t, new(int64(0)), host.MeasuredBytes)
	require.Equal(t, []*int64{new(int64(0)), new(int64(0))}, []*int64{device.MeasuredBytes, device.ActivityMilli})

	b.onGPU(t)

	for _, ago := range []string{"0", "1 hour"} { // in the minute of the look before, or in one of its own
		b.exec(t, "UPDATE machine_points SET at = at - $1::text::interval", ago)
		b.look(t, 8*gib, 8*gib)

		host, device = b.both(t)
		require.Nil(t, host.MeasuredBytes)
		require.Nil(t, device.MeasuredBytes)
		require.Nil(t, device.ActivityMilli)
	}
}

// A worker that starts again with less memory has no more than that, also while its attempts hold more,
// and beside points of a clock that was ahead.
func TestListMachine_SmallerHost(t *testing.T) {
	t.Parallel()

	b := watch(t)
	b.place(t, b.request(t, 6*gib))
	b.look(t, 8*gib, 8*gib)
	b.exec(t, "UPDATE machine_points SET at = at + interval '1 day'")

	b.host.MemoryBytes, b.host.MemoryFreeBytes = 4*gib, 3*gib
	b.register(t)
	b.touch(t, berth.HostFree{MemoryBytes: 3 * gib})

	host, _ := b.both(t)
	require.Equal(t, int64(4*gib), host.MemoryBytes)
	require.Equal(t, int64(gib), *host.OthersBytes)
}

// Intervals are as many as cover the time, and whole: the first one, too, has the most of all its minutes.
func TestListMachine_Intervals(t *testing.T) {
	t.Parallel()

	b := watch(t)
	b.exec(t, `INSERT INTO machine_points (host_id, at, memory_bytes, reserved_bytes, attempts)
		SELECT $1, m, $2, CASE WHEN extract(minute FROM m) = 0 THEN $3::bigint ELSE $4::bigint END, 1
		FROM generate_series(date_trunc('minute', now()) - interval '50 hours', date_trunc('minute', now()), interval '1 minute') m`,
		b.host.ID, int64(8*gib), int64(5*gib), int64(gib))

	for _, test := range []struct {
		covered time.Duration
		most    int
		every   time.Duration
	}{
		{12 * time.Hour, 12, time.Hour},
		{5 * time.Hour, 1, 6 * time.Hour},
		{7 * time.Hour, 2, 6 * time.Hour},
		{48 * time.Hour, 4, 12 * time.Hour},
	} {
		require.Equal(t, test.every, timeline.MachineInterval(test.covered, test.most))

		all := b.machinePoints(t, test.covered, test.every)
		require.Len(t, all, test.most)

		for _, p := range all {
			require.Equal(t, int64(5*gib), p.ReservedBytes, "%s of %s", p.At, test.covered)
		}
	}
}
