package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// What is kept of a machine is the most of its looks in an interval, each GPU beside the host.
func TestListMachine(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()
	exec := func(statement string, args ...any) {
		t.Helper()

		_, err := pool.Exec(ctx, statement, args...)
		require.NoError(t, err)
	}
	look := func(free berth.HostFree) {
		t.Helper()
		require.NoError(t, b.store.TouchHost(ctx, b.host.ID, free, nil))
	}
	b.host.Devices = []berth.Device{{ID: "GPU-1", HostID: b.host.ID, Model: "H", Mode: berth.SharingTimeSlicing, MemoryBytes: 8 * gib, FreeBytes: 8 * gib, MaxContexts: 48}}
	require.NoError(t, b.store.RegisterHost(ctx, b.host, "test"))

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

	// 3. They have ended; the worker does not see the GPU, and neither can tell what is free.
	b.end(t, first)
	b.end(t, second)
	look(berth.HostFree{Problem: "its disk takes no files", Devices: []berth.DeviceFree{{ID: "GPU-1", Problem: "lost"}}})

	const always = 36500 * 24 * time.Hour // one interval, whatever minutes the looks fell into

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

	// What is older than a week goes, and only that.
	exec("UPDATE machine_points SET at = at - interval '7 days' WHERE attempts = 3")
	b.store.Retain(ctx, berth.Retention{}, map[string]error{})

	var most int
	require.NoError(t, pool.QueryRow(ctx, "SELECT max(attempts) FROM machine_points").Scan(&most))
	require.Equal(t, 2, most)
}
