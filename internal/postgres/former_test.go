package postgres_test

import (
	"fmt"
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
			_, err := pool.Exec(t.Context(), `INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes) VALUES ($1, 'full', 3, $2)`,
				r.ShapeKey, 30*gib)
			require.NoError(t, err)

			tt.leave(t, b, large)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestImpossible, b.status(t, typo), "no host ever held it")
			require.Equal(t, berth.RequestWaiting, b.status(t, r))
			require.Contains(t, b.reasons(t, number)[0], tt.why)
			require.Regexp(t, `waits until \d{4}-\d\d-\d\d \d\d:\d\d UTC`, b.reasons(t, number)[0])

			_, err = pool.Exec(t.Context(), "UPDATE hosts SET removed_at = removed_at - $1::interval, last_seen_at = last_seen_at - $1::interval, shrunk_at = shrunk_at - $1::interval WHERE id = $2",
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

// rounds has a placer that knows nothing of earlier rounds decide twice: what
// asks for less after the first round may get a place in the second.
func (b *bundle) rounds(t *testing.T) {
	t.Helper()

	p := placer.New(b.store, slog.New(slog.DiscardHandler))
	require.NoError(t, p.Round(t.Context()))
	require.NoError(t, p.Round(t.Context()))
}

// What an out-of-memory of one trial added for the others of its shape must not
// wait for a host that is lost, nor end them once it is removed. What was
// measured, what the trial itself ran out of and what the user wrote does.
func TestPlacer_SizesAnewWhatOnlyAHostThatWentHolds(t *testing.T) {
	t.Parallel()

	const waiting, placed, impossible = berth.RequestWaiting, berth.RequestPlaced, berth.RequestImpossible

	for name, tt := range map[string]struct {
		peak, ranOut, sized int64 // GiB
		lost, removed       berth.RequestState
	}{
		"an out-of-memory of another trial": {peak: 10, lost: placed},
		"nothing is measured":               {lost: placed},
		"the shape was measured":            {peak: 18, lost: waiting, removed: impossible},
		"the trial ran out of less":         {peak: 10, ranOut: 15, lost: waiting, removed: placed},
		"the trial ran out of as much":      {peak: 10, ranOut: 16, lost: waiting, removed: impossible},
		"the user wrote the size":           {peak: 10, sized: 24, lost: waiting, removed: impossible},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)
			exec := func(statement string, args ...any) {
				t.Helper()

				_, err := pool.Exec(t.Context(), statement, args...)
				require.NoError(t, err)
			}

			large := b.host
			large.ID, large.Name, large.MemoryBytes, large.MemoryFreeBytes = uuid.NewString(), "large", 64*gib, 64*gib
			require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))
			b.host.MemoryBytes, b.host.MemoryFreeBytes = 16*gib, 16*gib
			require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

			if tt.sized > 0 {
				exec("UPDATE sweeps SET spec = jsonb_set(spec::jsonb, '{resources}', jsonb_build_object('memory', $1::text))::json", fmt.Sprintf("%d GiB", tt.sized))
			}

			r := b.request(t, max(tt.ranOut, 1)*gib)
			if tt.ranOut > 0 {
				b.runs(t, r, berth.FailureHostOOM, tt.ranOut*gib)
				exec("UPDATE attempts SET memory_bytes = $1", tt.ranOut*gib)
				r = b.again(t, r, 2)
			}

			exec("DELETE FROM footprints")

			if tt.peak > 0 {
				exec("INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, memory_floor_bytes) VALUES ($1, 'full', 3, $2, $3)",
					r.ShapeKey, tt.peak*gib, 16*gib)
			}

			exec("UPDATE placement_requests SET memory_bytes = $1 WHERE attempt_id = $2", 24*gib, r.AttemptID)
			exec("UPDATE hosts SET last_seen_at = now() - interval '1 hour' WHERE id = $1", large.ID)
			b.rounds(t)
			require.Equal(t, tt.lost, b.status(t, r))

			if tt.lost == placed {
				attempt, err := b.store.GetAttempt(t.Context(), r.AttemptID)
				require.NoError(t, err)
				require.Equal(t, int64(16*gib), attempt.Demand.MemoryBytes)

				return
			}

			require.NoError(t, b.store.RemoveHost(t.Context(), large.ID, true))
			b.rounds(t)
			require.Equal(t, waiting, b.status(t, r), "another host may come in its stead")

			exec("UPDATE hosts SET removed_at = removed_at - $1::interval, last_seen_at = last_seen_at - $1::interval WHERE id = $2", berth.HostGrace, large.ID)
			b.rounds(t)
			require.Equal(t, tt.removed, b.status(t, r))
		})
	}
}

// The last attempt of a trial must not run out of memory at what a small host
// had when it asked, alone on a large one that came meanwhile.
func TestPlacer_TheLastAttemptGetsWhatItsHostHas(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	b.place(t, b.request(t, gib))
	last := b.request(t, 8*gib)
	_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET exclusive = true WHERE attempt_id = $1", last.AttemptID)
	require.NoError(t, err)
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

// Nor must it wait for programs outside Berth to end, which may run for weeks.
func TestPlacer_SizesAnewWhatProgramsOutsideLeaveNoRoomFor(t *testing.T) {
	t.Parallel()

	const waiting, placed = berth.RequestWaiting, berth.RequestPlaced

	for name, tt := range map[string]struct {
		peak, ranOut          int64 // GiB
		partial, sized, alone bool
		want                  berth.RequestState
	}{
		"an out-of-memory of another trial": {peak: 10, want: placed},
		"the shape was measured":            {peak: 18, want: waiting},
		"nothing is measured":               {want: waiting},
		"a run was measured in part":        {peak: 10, partial: true, want: waiting},
		"the trial itself ran out":          {peak: 10, ranOut: 15, want: waiting},
		"it ran out of much less":           {peak: 10, ranOut: 8, want: placed},
		"the user wrote the size":           {peak: 10, sized: true, want: waiting},
		"its last attempt grows":            {ranOut: 10, alone: true, want: placed},
		"its last attempt hardly grows":     {ranOut: 12, alone: true, want: waiting},
		"its last, a sibling needed more":   {peak: 18, ranOut: 10, alone: true, want: waiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)
			exec := func(statement string, args ...any) {
				t.Helper()

				_, err := pool.Exec(t.Context(), statement, args...)
				require.NoError(t, err)
			}

			b.host.MemoryBytes, b.host.MemoryFreeBytes = 32*gib, 32*gib
			require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

			if tt.sized {
				exec("UPDATE sweeps SET spec = jsonb_set(spec::jsonb, '{resources}', '{\"memory\": \"24 GiB\"}')::json")
			}

			r := b.request(t, max(tt.ranOut, 1)*gib)
			if tt.ranOut > 0 {
				b.runs(t, r, berth.FailureHostOOM, tt.ranOut*gib)
				r = b.again(t, r, 2)
			}

			exec("DELETE FROM footprints")

			if tt.peak > 0 {
				exec("INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, memory_floor_bytes) VALUES ($1, 'full', 3, $2, $3)",
					r.ShapeKey, tt.peak*gib, 16*gib)
			}

			if tt.partial {
				exec("UPDATE footprints SET source = 'partial', samples = 0")
			}

			exec("UPDATE placement_requests SET memory_bytes = $1, exclusive = $3 WHERE attempt_id = $2", 24*gib, r.AttemptID, tt.alone)
			exec("UPDATE hosts SET memory_free_bytes = $1", 16*gib)
			b.rounds(t)
			require.Equal(t, tt.want, b.status(t, r))

			if tt.want == placed {
				attempt, err := b.store.GetAttempt(t.Context(), r.AttemptID)
				require.NoError(t, err)
				require.Equal(t, int64(15*gib+3*gib/16), attempt.Demand.MemoryBytes)
			}
		})
	}
}

// ask asks for a place for a trial that needs so many cores.
func (b *bundle) ask(t *testing.T, pool *pgxpool.Pool, memory, cpuMilli int64) berth.PlacementRequest {
	t.Helper()

	r := b.request(t, memory)
	_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET cpu_milli = $1 WHERE attempt_id = $2", cpuMilli, r.AttemptID)
	require.NoError(t, err)

	return r
}
