package postgres_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// shrink registers a host anew with so much memory and so many cores.
func (b *bundle) shrink(t *testing.T, h berth.Host, memory, cpuMilli int64) {
	t.Helper()

	h.MemoryBytes, h.CPUMilli = memory, cpuMilli
	require.NoError(t, b.store.RegisterHost(t.Context(), h, "test"))
}

// A host that is removed before its replacement is there, or that comes back
// smaller, must not end the trials that only it holds: they wait for a while.
// What no host held is refused at once.
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

			r, number := b.ask(t, pool, 32*gib, 8000), b.trial
			typo := b.ask(t, pool, 640*gib, 8000)

			tt.leave(t, b, large)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, typo), "no host ever held it")
			require.Equal(t, berth.RequestWaiting, b.status(t, r))
			require.Contains(t, b.reasons(t, number)[0], tt.why)
			require.Regexp(t, `waits until \d{4}-\d\d-\d\d \d\d:\d\d UTC`, b.reasons(t, number)[0])

			_, err := pool.Exec(t.Context(), "UPDATE hosts SET removed_at = removed_at - $1::interval, last_seen_at = last_seen_at - $1::interval, shrunk_at = shrunk_at - $1::interval WHERE id = $2",
				berth.HostGrace, large.ID)
			require.NoError(t, err)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, r))
		})
	}
}

// A host that comes back as large as it was takes what waited for it.
func TestPlacer_PlacesWhatWaitedForAHost(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	large := b.host
	large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes, large.CPUMilli = uuid.NewString(), "large", 64*gib, 64*gib, 16_000
	require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))

	r := b.ask(t, pool, 32*gib, 8000)

	require.NoError(t, b.store.RemoveHost(t.Context(), large.ID, true))
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestWaiting, b.status(t, r))

	large.ID = uuid.NewString() // the replacement
	require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestPlaced, b.status(t, r))
}

// ask asks for a place for a trial that needs so many cores.
func (b *bundle) ask(t *testing.T, pool *pgxpool.Pool, memory, cpuMilli int64) berth.PlacementRequest {
	t.Helper()

	r := b.request(t, memory)
	_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET cpu_milli = $1 WHERE attempt_id = $2", cpuMilli, r.AttemptID)
	require.NoError(t, err)

	return r
}
