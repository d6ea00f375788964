package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// shrink registers a host again with this much memory and CPU.
func (b *bundle) shrink(t *testing.T, h berth.Host, memory, cpuMilli int64) {
	t.Helper()

	h.MemoryBytes, h.CPUMilli = memory, cpuMilli
	require.NoError(t, b.store.RegisterHost(t.Context(), h, "test"))
}

// A host removed before its replacement has come, or one that comes back
// smaller, must not end the trials that only it holds: they wait for a while. A
// trial that no host ever held is refused at once.
func TestPlacer_WaitsForAHostThatWent(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		leave func(t *testing.T, b *bundle, large berth.Host)
		why   string
	}{
		"removed": {func(t *testing.T, b *bundle, large berth.Host) {
			t.Helper()
			require.NoError(t, b.store.RemoveHost(t.Context(), large.ID, true))
		}, "host large: it was removed"},
		"less memory": {func(t *testing.T, b *bundle, large berth.Host) {
			t.Helper()
			b.shrink(t, large, 16*gib, large.CPUMilli)
		}, "host large: its worker came back with less memory or fewer cores"},
		"fewer cores": {func(t *testing.T, b *bundle, large berth.Host) {
			t.Helper()
			b.shrink(t, large, large.MemoryBytes, 2000)
		}, "host large: its worker came back with less memory or fewer cores"},
		"less each time": {func(t *testing.T, b *bundle, large berth.Host) {
			t.Helper()
			b.shrink(t, large, 24*gib, large.CPUMilli)
			b.shrink(t, large, 16*gib, large.CPUMilli)
			b.shrink(t, large, 16*gib, large.CPUMilli)
		}, "host large: its worker came back with less memory or fewer cores"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)
			p := placer.New(b.store, slog.New(slog.DiscardHandler))

			large := b.host
			large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes, large.CPUMilli = uuid.NewString(), "large", 64*gib, 64*gib, 16_000
			require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))

			waits := b.sized(t, 32*gib, 8000)
			r := waits.request(t, gib)
			typo := b.sized(t, 640*gib, 8000).request(t, gib)

			tt.leave(t, b, large)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, typo), "no host ever held it")
			require.Equal(t, berth.RequestWaiting, b.status(t, r))
			require.Contains(t, waits.reasons(t, 1)[0], tt.why)
			require.Regexp(t, `waits until \d{4}-\d\d-\d\d \d\d:\d\d UTC`, waits.reasons(t, 1)[0])

			_, err := pool.Exec(t.Context(), "UPDATE hosts SET removed_at = removed_at - $1::interval, last_seen_at = last_seen_at - $1::interval, shrunk_at = shrunk_at - $1::interval WHERE id = $2",
				berth.HostGrace, large.ID)
			require.NoError(t, err)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, r))
		})
	}
}

// A host that comes back without its GPU, because its driver is gone, ends no trial,
// for any length of time: they wait, also where a smaller GPU is left, and start once
// the GPU is back.
func TestPlacer_WaitsForAGPUWithoutItsDriver(t *testing.T) {
	t.Parallel()

	for name, others := range map[string][]berth.Device{
		"no other GPU": {},
		"a smaller one": {{
			ID: "GPU-small", Model: "small", Mode: berth.SharingTimeSlicing, MemoryBytes: 8 * gib, FreeBytes: 8 * gib, MaxContexts: 48,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)
			p := placer.New(b.store, slog.New(slog.DiscardHandler))
			large := berth.Device{ID: "GPU-large", Model: "large", Mode: berth.SharingTimeSlicing, MemoryBytes: 80 * gib, FreeBytes: 80 * gib, MaxContexts: 48}
			register := func(devices ...berth.Device) {
				b.host.Devices = devices
				require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
			}
			register(append(others, large)...)

			gpus := *b
			gpus.sweep, gpus.trial = uuid.NewString(), 0
			_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
				ID: gpus.sweep, ImageDigest: "sha256:x", CreatedBy: "local",
				Spec: berth.Spec{Name: "gpus", Resources: berth.Resources{Device: berth.DeviceGPU, GPUMemory: 40 * gib, Memory: gib, CPUs: 1000}},
			})
			require.NoError(t, err)

			register(others...)

			r := gpus.request(t, gib)

			_, err = pool.Exec(t.Context(), "UPDATE devices SET lost_at = lost_at - interval '20 minutes'")
			require.NoError(t, err)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestWaiting, b.status(t, r))
			require.Contains(t, strings.Join(gpus.reasons(t, 1), "; "), berth.Forgotten)

			hosts, err := b.store.ListHosts(t.Context())
			require.NoError(t, err)
			require.Len(t, hosts[0].Devices, len(others), "people see it no more")

			register(append(others, large)...)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestPlaced, b.status(t, r))
		})
	}
}

// A trial that wants a GPU waits where no host has one, also when the host that had it
// was removed long ago.
func TestPlacer_WaitsWhereNoHostHasAGPU(t *testing.T) {
	t.Parallel()

	b := setupOn(t, pgtest.URL(t))
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	gpus := *b
	gpus.sweep, gpus.trial = uuid.NewString(), 0
	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
		ID: gpus.sweep, ImageDigest: "sha256:x", CreatedBy: "local",
		Spec: berth.Spec{Name: "gpus", Resources: berth.Resources{Device: berth.DeviceGPU, Memory: gib, CPUs: 1000}},
	})
	require.NoError(t, err)

	r := gpus.request(t, gib)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestWaiting, b.status(t, r))
	require.Contains(t, gpus.reasons(t, 1)[0], "no host is known that has a GPU")
}

// A host that comes back at its old size takes the requests that waited for it.
func TestPlacer_PlacesWhatWaitedForAHost(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	large := b.host
	large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes, large.CPUMilli = uuid.NewString(), "large", 64*gib, 64*gib, 16_000
	require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))

	r := b.sized(t, 32*gib, 8000).request(t, gib)

	require.NoError(t, b.store.RemoveHost(t.Context(), large.ID, true))
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestWaiting, b.status(t, r))

	large.ID = uuid.NewString() // the replacement
	require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestPlaced, b.status(t, r))
}

// A raise by another trial's out-of-memory must not wait for a lost host, nor
// for programs outside Berth. A trial's own out-of-memory waits for the larger
// host, until that is gone for good.
func TestPlacer_SizesAnewWhatOnlyAHostThatWentHolds(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))
	exec := func(statement string, args ...any) {
		t.Helper()

		_, err := pool.Exec(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	place := func(r berth.PlacementRequest) int64 {
		t.Helper()
		require.NoError(t, p.Round(t.Context()))

		status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
		require.NoError(t, err)
		require.NotEqual(t, berth.RequestImpossible, status.State)

		return status.Demand.MemoryBytes
	}

	large := b.host
	large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes = uuid.NewString(), "large", 64*gib, 64*gib
	require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))
	b.host.MemoryBytes, b.host.MemoryFreeBytes = 16*gib, 16*gib
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	exec("UPDATE hosts SET last_seen_at = now() - interval '1 hour' WHERE id = $1", large.ID)

	sibling := b.request(t, gib)
	exec("INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, memory_floor_bytes) VALUES ($1, 'full', 3, $2, $3)", sibling.ShapeKey, 10*gib, 16*gib)
	require.Equal(t, int64(16*gib), place(sibling))
	b.end(t, sibling)

	another := b.request(t, gib)
	exec("UPDATE hosts SET memory_free_bytes = $1 WHERE id = $2", 12*gib, b.host.ID)
	require.Equal(t, berth.AloneBytes(16*gib, 12*gib), place(another))
	b.end(t, another)
	exec("UPDATE hosts SET memory_free_bytes = $1 WHERE id = $2", 16*gib, b.host.ID)

	retry := b.request(t, gib)
	_, err := b.store.WithdrawRequest(t.Context(), retry.AttemptID)
	require.NoError(t, err)

	retry.Last = ranOut(15*gib, 1)
	retry = b.again(t, retry, 2)
	require.Zero(t, place(retry), "it waits for the large host")

	require.NoError(t, b.store.RemoveHost(t.Context(), large.ID, true))
	require.Zero(t, place(retry), "another host may come in its stead")

	exec("UPDATE hosts SET removed_at = removed_at - $1::interval, last_seen_at = last_seen_at - $1::interval WHERE id = $2", berth.HostGrace, large.ID)
	require.Equal(t, int64(16*gib), place(retry))
}

// end ends an attempt that was placed.
func (b *bundle) end(t *testing.T, r berth.PlacementRequest) {
	t.Helper()

	status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{Kind: berth.FailureCrashed, FinishedAt: time.Now()})))
}

// The last attempt of a trial must not run out of memory on a large host
// because its request was cut to a small host's memory.
func TestPlacer_TheLastAttemptGetsWhatItsHostHas(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	b.place(t, b.request(t, gib))
	last := b.request(t, 8*gib)
	_, err := b.store.WithdrawRequest(t.Context(), last.AttemptID)
	require.NoError(t, err)

	last.Last = ranOut(4*gib, 2)
	last = b.again(t, last, 3)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestWaiting, b.status(t, last), "the small host has a neighbour")

	large := b.host
	large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes = uuid.NewString(), "large", 64*gib+large.MemoryHeadroomBytes, 128*gib
	require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))
	require.NoError(t, p.Round(t.Context()))

	status, err := b.store.PlacementStatus(t.Context(), last.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestPlaced, status.State)
	require.Equal(t, large.ID, status.HostID)
	require.Equal(t, int64(64*gib), status.Demand.MemoryBytes)

	var lease, host int64

	require.NoError(t, pool.QueryRow(t.Context(), "SELECT l.memory_bytes, h.memory_reserved_bytes FROM leases l JOIN hosts h ON h.id = l.host_id WHERE l.attempt_id = $1",
		last.AttemptID).Scan(&lease, &host))
	require.Equal(t, []int64{64 * gib, 64 * gib}, []int64{lease, host})
}
