package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/timeline"
)

// always is one interval, for samples of any minutes.
const always = 36500 * 24 * time.Hour

// watched is a machine of 8 GiB, with a GPU of 8 GiB.
type watched struct {
	*bundle

	pool *pgxpool.Pool
}

func watch(t *testing.T) watched {
	t.Helper()

	url := pgtest.URL(t)
	w := watched{setupOn(t, url), openPool(t, url)}
	w.host.Devices = []berth.Device{{
		ID: "GPU-1", HostID: w.host.ID, Model: "H", Mode: berth.SharingTimeSlicing, MemoryBytes: 8 * gib, FreeBytes: 8 * gib, MaxContexts: 48,
	}}
	require.NoError(t, w.store.RegisterHost(t.Context(), w.host, "test"))

	return w
}

func (w watched) exec(t *testing.T, statement string, args ...any) {
	t.Helper()

	_, err := w.pool.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// look is a worker's report of the machine and its GPUs.
func (w watched) look(t *testing.T, free berth.HostFree) {
	t.Helper()
	require.NoError(t, w.store.TouchHost(t.Context(), w.host.ID, free, nil))
}

// onGPU places an attempt for which 1 GiB of the GPU is reserved.
func (w watched) onGPU(t *testing.T) (attemptID string, token int64) {
	t.Helper()

	r := w.request(t, gib)
	token = w.place(t, r).Token
	w.exec(t, "UPDATE leases SET device_id = 'GPU-1', device_bytes = $2 WHERE attempt_id = $1", r.AttemptID, gib)
	w.exec(t, "UPDATE devices SET reserved_bytes = $1 WHERE id = 'GPU-1'", gib)

	return r.AttemptID, token
}

// points are the machine's and the GPU's.
func (w watched) points(t *testing.T) (host, device berth.MachinePoint) {
	t.Helper()

	all, err := w.store.ListMachine(t.Context(), w.host.ID, time.Hour, always)
	require.NoError(t, err)
	require.Len(t, all, 2)

	return all[0], all[1]
}

// The store keeps the maximum of a host's samples in an interval, and each GPU beside the
// host.
func TestListMachine(t *testing.T) {
	t.Parallel()

	b, ctx := watch(t), t.Context()
	exec := func(statement string, args ...any) {
		t.Helper()
		b.exec(t, statement, args...)
	}
	look := func(free berth.HostFree) {
		t.Helper()
		b.look(t, free)
	}

	points := func(every time.Duration) []berth.MachinePoint {
		t.Helper()

		all, err := b.store.ListMachine(ctx, b.host.ID, 2*time.Hour, every)
		require.NoError(t, err)

		return all
	}
	require.Empty(t, points(time.Minute))

	// 1. Nothing runs; programs outside Berth use 1 GiB of the host and 2 of its GPU.
	look(berth.HostFree{MemoryBytes: 7 * gib, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 6 * gib}}})

	// 2. Two attempts hold places, one of them measured.
	first, second := b.request(t, gib), b.request(t, 2*gib)
	token := b.place(t, first).Token
	b.place(t, second)
	exec("UPDATE leases SET device_id = 'GPU-1', device_bytes = 1000 WHERE attempt_id = $1", first.AttemptID)
	exec("UPDATE devices SET reserved_bytes = 1000 WHERE id = 'GPU-1'")
	require.NoError(t, b.store.PutMemory(ctx, first.AttemptID, token, []berth.MemoryPoint{
		{Second: 7, HostBytes: new(int64(999)), DeviceBytes: new(int64(999))},
		{Second: 8, HostBytes: new(int64(4)), DeviceBytes: new(int64(6)), SMMilli: new(int64(250))},
		{Second: 9, HostBytes: new(int64(5))}, // its GPU was not read yet
	}))
	look(berth.HostFree{MemoryBytes: 8 * gib, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 8 * gib}}})

	// 3. They have ended; the worker does not see the GPU, and so neither knows the free
	// memory.
	b.end(t, first)
	b.end(t, second)
	look(berth.HostFree{Problem: "its disk takes no files", Devices: []berth.DeviceFree{{ID: "GPU-1", Problem: "lost"}}})

	all := points(always)

	require.Equal(t, []berth.MachinePoint{
		{
			At: time.Unix(0, 0).UTC(), MemoryBytes: 8 * gib, ReservedBytes: 3 * gib, MeasuredBytes: new(int64(5)), OthersBytes: new(int64(gib)),
			CPUMilli: 2000, Attempts: 2,
		},
		{
			At: time.Unix(0, 0).UTC(), DeviceID: "GPU-1", MemoryBytes: 8 * gib, ReservedBytes: 1000, MeasuredBytes: new(int64(6)), OthersBytes: new(int64(2 * gib)),
			ActivityMilli: new(int64(250)), Attempts: 1,
		},
	}, all)

	// An hour ago the host was fuller.
	exec(`INSERT INTO machine_points (host_id, at, memory_bytes, reserved_bytes, attempts) VALUES ($1, date_trunc('minute', now()) - interval '1 hour', $2, $3, 3)`,
		b.host.ID, 8*gib, 4*gib)
	require.Equal(t, int64(4*gib), points(always)[0].ReservedBytes, "the most")
	require.Equal(t, int64(4*gib), points(time.Minute)[0].ReservedBytes, "each minute apart")
	require.NotEqual(t, int64(4*gib), points(time.Minute)[1].ReservedBytes)

	// Only points older than a week are deleted.
	exec("UPDATE machine_points SET at = at - interval '7 days' WHERE attempts = 3")
	b.store.Retain(ctx, berth.Retention{}, map[string]error{})

	var most int
	require.NoError(t, b.pool.QueryRow(ctx, "SELECT max(attempts) FROM machine_points").Scan(&most))
	require.Equal(t, 2, most)
}

// The attempts' memory on a GPU does not count as used by others: neither while the worker cannot tell which
// containers are ours, nor where one holds more than its reservation, which FreeBeside gives back only up to
// the reservation.
func TestListMachine_OthersUseNothingOfAttempts(t *testing.T) {
	t.Parallel()

	w := watch(t)
	id, token := w.onGPU(t)
	put := func(second int, bytes int64) {
		t.Helper()
		require.NoError(t, w.store.PutMemory(t.Context(), id, token, []berth.MemoryPoint{{Second: second, HostBytes: new(int64(gib)), DeviceBytes: new(bytes)}}))
	}

	put(1, gib)
	w.look(t, berth.HostFree{MemoryBytes: 7 * gib, Problem: "Docker does not answer", Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 7 * gib}}})

	host, device := w.points(t)
	require.Nil(t, host.OthersBytes)
	require.Nil(t, device.OthersBytes)
	require.Equal(t, int64(gib), *device.MeasuredBytes)

	put(2, 6*gib) // of the rest, another program uses 1 GiB: 8 - 7 + min(6, 1) are free
	w.look(t, berth.HostFree{MemoryBytes: 8 * gib, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 2 * gib}}})

	_, device = w.points(t)
	require.Equal(t, int64(6*gib), *device.MeasuredBytes)
	require.Equal(t, int64(gib), *device.OthersBytes)
}

// An idle host uses zero, which is known. The use of unmeasured attempts is unknown.
func TestListMachine_IdleIsZero(t *testing.T) {
	t.Parallel()

	w := watch(t)
	idle := berth.HostFree{MemoryBytes: 8 * gib, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 8 * gib}}}

	w.look(t, idle)

	host, device := w.points(t)
	require.Equal(t, new(int64(0)), host.MeasuredBytes)
	require.Equal(t, []*int64{new(int64(0)), new(int64(0))}, []*int64{device.MeasuredBytes, device.ActivityMilli})

	w.onGPU(t)

	for _, ago := range []string{"0", "1 hour"} { // in the minute of the look before, or in one of its own
		w.exec(t, "UPDATE machine_points SET at = at - $1::text::interval", ago)
		w.look(t, idle)

		host, device = w.points(t)
		require.Nil(t, host.MeasuredBytes)
		require.Nil(t, device.MeasuredBytes)
		require.Nil(t, device.ActivityMilli)
	}
}

// A worker that starts again with less memory has no more than that, also while its attempts hold more.
func TestListMachine_SmallerHost(t *testing.T) {
	t.Parallel()

	w := watch(t)
	w.place(t, w.request(t, 6*gib))

	w.host.MemoryBytes, w.host.MemoryFreeBytes = 4*gib, 3*gib
	require.NoError(t, w.store.RegisterHost(t.Context(), w.host, "test"))
	w.look(t, berth.HostFree{MemoryBytes: 3 * gib})

	host, _ := w.points(t)
	require.Equal(t, int64(4*gib), host.MemoryBytes)
	require.Equal(t, int64(gib), *host.OthersBytes)
}

// Intervals are as many as cover the time, and whole: the first one, too, has the most of all its minutes.
func TestListMachine_Intervals(t *testing.T) {
	t.Parallel()

	w := watch(t)
	w.exec(t, `INSERT INTO machine_points (host_id, at, memory_bytes, reserved_bytes, attempts)
		SELECT $1, m, $2, CASE WHEN extract(minute FROM m) = 0 THEN $3::bigint ELSE $4::bigint END, 1
		FROM generate_series(date_trunc('minute', now()) - interval '50 hours', date_trunc('minute', now()), interval '1 minute') m`,
		w.host.ID, 8*gib, 5*gib, gib)

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

		all, err := w.store.ListMachine(t.Context(), w.host.ID, test.covered, test.every)
		require.NoError(t, err)
		require.Len(t, all, test.most)

		for _, p := range all {
			require.Equal(t, int64(5*gib), p.ReservedBytes, "%s of %s", p.At, test.covered)
		}
	}
}

// A clock that was a day ahead, and is put right, leaves points of the future.
func TestListMachine_ClockThatWasAhead(t *testing.T) {
	t.Parallel()

	w := watch(t)
	w.look(t, berth.HostFree{MemoryBytes: gib})
	w.exec(t, "UPDATE machine_points SET at = at + interval '1 day'")
	w.look(t, berth.HostFree{MemoryBytes: 7 * gib})

	host, _ := w.points(t)
	require.Equal(t, int64(gib), *host.OthersBytes)
}
