package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// What says when the queue starts: what waits, what runs and for how long it has, and how long trials of each took.
func TestForesight(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)

	f, err := b.store.Foresight(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, berth.Foresight{Complete: true}, f, "nothing waits")

	other := b.sized(t, 5*gib, 1000)
	runs, silent, ended, waits := b.request(t, 2*gib), other.request(t, gib), other.request(t, gib), other.request(t, 5*gib)

	for _, r := range []berth.PlacementRequest{runs, silent, ended} {
		b.place(t, r)
	}

	for _, do := range []struct {
		sql string
		id  string
	}{
		{"UPDATE attempts SET placed_at = now() - interval '90 s' WHERE id = $1", runs.AttemptID},
		{"UPDATE leases SET state = 'suspect' WHERE attempt_id = $1", silent.AttemptID},
		{"UPDATE attempts SET state = 'finished', failure_kind = 'ok', finished_at = now() WHERE id = $1", ended.AttemptID},
		{"UPDATE sweeps SET planned = 20 WHERE id = $1", other.sweep},
		// Three trials of the other sweep took 1, 2 and 3 minutes, of one shape but for the last.
		{`INSERT INTO shapes (key, shape) SELECT k, '{}' FROM unnest(ARRAY['one', 'two']) k WHERE $1::uuid IS NOT NULL`, other.sweep},
		{`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at, finished_at)
			SELECT gen_random_uuid(), $1, 10 + n, '{}', CASE WHEN n < 3 THEN 'one' ELSE 'two' END, 'succeeded', now() - n * interval '1 min', now() FROM generate_series(1, 3) n`, other.sweep},
	} {
		_, err := pool.Exec(t.Context(), do.sql, do.id)
		require.NoError(t, err, do.sql)
	}

	f, err = b.store.Foresight(t.Context(), 10)
	require.NoError(t, err)
	require.True(t, f.Complete)
	require.Len(t, f.Queue.Waiting, 1)
	require.Equal(t, waits.AttemptID, f.Queue.Waiting[0].AttemptID)
	require.Equal(t, b.host.ID, f.Queue.Hosts[0].ID)
	require.Equal(t, 7, f.Queue.Sweeps[other.sweep].Left, "of 20 the 13th is the last that was suggested")
	require.Equal(t, 2, f.Queue.Sweeps[other.sweep].Running)

	require.Len(t, f.Running, 3)
	require.InDelta(t, 90, f.Running[0].Ran.Seconds(), 30)

	want := berth.RunningAttempt{SweepID: b.sweep, ShapeKey: runs.ShapeKey, HostID: b.host.ID, Demand: runs.Demand, Ran: f.Running[0].Ran}
	require.Equal(t, want, f.Running[0])
	require.True(t, f.Running[1].Silent)
	require.True(t, f.Running[2].Ended)

	times := f.Times[other.sweep]
	require.Equal(t, 3, times[""].Ended)
	require.InDelta(t, 120, times[""].Mean.Seconds(), 1)
	require.Equal(t, 2, times["one"].Ended)
	require.InDelta(t, 90, times["one"].Mean.Seconds(), 1)
	require.Equal(t, times[""], times.Of("one"), "too few of the shape have ended")
	require.False(t, f.Times[b.sweep].Of("one").Each().Known, "none of the sweep has ended")

	// 2 GiB and 1 GiB of 8 are held until nobody knows when; 1 GiB is free in a moment, and 5 GiB fit then.
	require.Equal(t, berth.ExpectedStart{}, placer.Foresee(f)[waits.AttemptID])

	f.Running[2].Ended = false
	require.NotEqual(t, berth.ExpectedStart{}, placer.Foresee(f)[waits.AttemptID])

	f, err = b.store.Foresight(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, f.Complete, "there may be more")
}

// Times by shape are those of its own trials.
func TestForesight_TimesByShape(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.request(t, gib)

	_, err := pool.Exec(t.Context(), `INSERT INTO shapes (key, shape) SELECT k, '{}' FROM unnest(ARRAY['short', 'long']) k`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at, finished_at)
		SELECT gen_random_uuid(), $1, 10 + n, '{}', s.key, 'succeeded', now() - s.took * interval '1 min', now()
		FROM generate_series(1, 9) n JOIN (VALUES ('short', 1, 0), ('long', 60, 1)) s (key, took, odd) ON n % 2 = s.odd`, b.sweep)
	require.NoError(t, err)

	f, err := b.store.Foresight(t.Context(), 10)
	require.NoError(t, err)

	times := f.Times[b.sweep]
	require.Equal(t, berth.RunTime{Known: true, Min: time.Minute, Max: time.Minute}, times.Of("short").Each())
	require.Equal(t, berth.RunTime{Known: true, Min: time.Hour, Max: time.Hour}, times.Of("long").Each())
	require.Equal(t, 9, times[""].Ended)
}

// What a host holds, and what holds it, are of one moment.
func TestForesight_OfOneMoment(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.request(t, 8*gib) // waits
	r := b.request(t, gib)
	b.place(t, r)

	ctx, stop := context.WithCancel(t.Context())

	var flips sync.WaitGroup

	flips.Go(func() { // the attempt ends and begins, each by one statement
		for ctx.Err() == nil {
			for _, sql := range []string{
				`WITH l AS (UPDATE leases SET state = 'released', released_at = now(), proof = 'x' WHERE attempt_id = $1 RETURNING 1)
					UPDATE hosts SET memory_reserved_bytes = memory_reserved_bytes - $2, attempts = attempts - 1 WHERE EXISTS (SELECT 1 FROM l)`,
				`WITH l AS (UPDATE leases SET state = 'held', released_at = NULL, proof = '' WHERE attempt_id = $1 RETURNING 1)
					UPDATE hosts SET memory_reserved_bytes = memory_reserved_bytes + $2, attempts = attempts + 1 WHERE EXISTS (SELECT 1 FROM l)`,
			} {
				if _, err := pool.Exec(ctx, sql, r.AttemptID, gib); err != nil && ctx.Err() == nil {
					t.Error(err)

					return
				}
			}
		}
	})

	defer flips.Wait()
	defer stop()

	for range 200 {
		f, err := b.store.Foresight(ctx, 10)
		require.NoError(t, err)
		require.Len(t, f.Running, f.Queue.Hosts[0].Attempts)
	}
}

// A host that has been lost for long gets no checkpoint back: what waits for it begins anew elsewhere.
func TestForesight_HostThatIsAwayForLong(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.request(t, gib)

	_, err := pool.Exec(t.Context(), `UPDATE hosts SET last_seen_at = now() - interval '3 hours'`)
	require.NoError(t, err)

	f, err := b.store.Foresight(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, berth.HostLost, f.Queue.Hosts[0].State)
	require.InDelta(t, (3*time.Hour - berth.HostLostAfter).Seconds(), f.Queue.Hosts[0].AbsentFor.Seconds(), 60)
}
