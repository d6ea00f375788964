package postgres_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/internal/timeline"
)

// points are a sawtooth of n finite points with a step of 3.
func points(name string, n int) []berth.MetricPoint {
	out := make([]berth.MetricPoint, n)
	for i := range out {
		out[i] = berth.MetricPoint{Name: name, Step: int64(i * 3), Value: float64(i * 37 % 101), Status: berth.MetricFinite, At: time.Now()}
	}

	return out
}

func TestCurves(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()

	first := b.request(t, gib)
	token := b.place(t, first).Token
	reported := points("loss", 500)
	reported = append(reported, berth.MetricPoint{Name: "loss", Step: 9001, Value: math.NaN(), Status: berth.MetricNaN, At: time.Now()},
		berth.MetricPoint{Name: "loss", Step: 9000, Value: math.Inf(1), Status: berth.MetricPosInfinity, At: time.Now()})
	require.NoError(t, b.store.PutMetrics(ctx, first.AttemptID, token, append(reported, points("accuracy", 2)...)))

	second := b.request(t, gib)
	require.NoError(t, b.store.PutMetrics(ctx, second.AttemptID, b.place(t, second).Token, points("loss", 3)))

	b.request(t, gib) // waits

	curves, err := b.store.Curves(ctx, b.sweep, "loss", []int{2, 1, 3, 77}, 40)
	require.NoError(t, err)
	require.Len(t, curves, 2, "one that waits has none")
	require.Equal(t, first.AttemptID, curves[0].AttemptID)
	require.Equal(t, []int{1, 2}, []int{curves[0].TrialNumber, curves[1].TrialNumber})
	require.Equal(t, []any{500, 2, int64(9000)}, []any{curves[0].Total, curves[0].NotFinite, curves[0].FirstBad})
	require.Len(t, curves[1].Points, 3)
	require.Zero(t, curves[1].NotFinite)

	thinned := timeline.NewThinner(0, 9001, 40)
	for _, p := range reported[:500] {
		thinned.Add(berth.CurvePoint{Step: p.Step, Value: p.Value})
	}

	require.Equal(t, thinned.Points(), curves[0].Points)

	curves, err = b.store.Curves(ctx, b.sweep, "odd", []int{1}, 40)
	require.NoError(t, err)
	require.Len(t, curves, 1)
	require.Empty(t, curves[0].Points)

	names, err := b.store.MetricNames(ctx, b.sweep)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricName{{Name: "accuracy", Trials: 1, LastStep: 3}, {Name: "loss", Trials: 2, LastStep: 9001}}, names)
}

// What a short probe reports is no curve; a newer attempt takes the place of an older one.
func TestCurves_OfTheAttemptThatCounts(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()

	first := b.request(t, gib)
	require.NoError(t, b.store.PutMetrics(ctx, first.AttemptID, b.place(t, first).Token, points("loss", 5)))
	b.end(t, first)

	short := first
	short.AttemptID, short.Number, short.Purpose, short.Short = uuid.NewString(), 2, berth.PurposeProbe, true
	_, err := b.store.RequestPlacement(ctx, short)
	require.NoError(t, err)
	require.NoError(t, b.store.PutMetrics(ctx, short.AttemptID, b.place(t, short).Token, points("short", 9)))

	curves, err := b.store.Curves(ctx, b.sweep, "loss", []int{1}, 40)
	require.NoError(t, err)
	require.Len(t, curves, 1)
	require.Equal(t, first.AttemptID, curves[0].AttemptID)
	require.Len(t, curves[0].Points, 5)

	names, err := b.store.MetricNames(ctx, b.sweep)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricName{{Name: "loss", Trials: 1, LastStep: 12}}, names)

	b.end(t, short)

	third := first
	third.AttemptID, third.Number = uuid.NewString(), 3
	_, err = b.store.RequestPlacement(ctx, third)
	require.NoError(t, err)
	require.NoError(t, b.store.PutMetrics(ctx, third.AttemptID, b.place(t, third).Token, points("loss", 2)))

	curves, err = b.store.Curves(ctx, b.sweep, "loss", []int{1}, 40)
	require.NoError(t, err)
	require.Equal(t, third.AttemptID, curves[0].AttemptID)
	require.Len(t, curves[0].Points, 2)
}

// What a page reads does not grow with the sweep: names come from its newest trials, by steps through an index.
func TestCurves_OfALargeSweep(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.addTrials(t, pool, 20_000)

	_, err := pool.Exec(t.Context(), `INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT a.id, 'long', step, sin(step / 50.0), 'finite', now() FROM attempts a JOIN trials t ON t.id = a.trial_id, generate_series(1, 4000) step
		WHERE a.number = 2 AND t.number <= 150`)
	require.NoError(t, err)

	began := time.Now()
	names, err := b.store.MetricNames(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, []string{"accuracy", "loss"}, []string{names[0].Name, names[1].Name})
	require.Equal(t, berth.MostNamedTrials, names[0].Trials)
	t.Logf("names: %v", time.Since(began).Round(time.Millisecond))

	numbers := make([]int, 150)
	for i := range numbers {
		numbers[i] = i + 1
	}

	began = time.Now()
	curves, err := b.store.Curves(t.Context(), b.sweep, "long", numbers, 400)
	require.NoError(t, err)

	read := 0
	for _, c := range curves {
		read += c.Total
		require.LessOrEqual(t, len(c.Points), 400)
		require.True(t, slices.ContainsFunc(c.Points, func(p berth.CurvePoint) bool { return p.Step == 4000 }))
	}

	t.Logf("%d curves of %d points: %v", len(curves), read, time.Since(began).Round(time.Millisecond))

	_, err = pool.Exec(t.Context(), `ANALYZE metrics`)
	require.NoError(t, err)
	b.store.Close()

	asked := rowsRead(t, url, pool, "metrics", func(store *postgres.Store) {
		curves, err := store.Curves(t.Context(), b.sweep, "long", []int{1, 2}, 400)
		require.NoError(t, err)
		require.Len(t, curves, 2)
	})
	require.LessOrEqual(t, asked, int64(9000), "two curves of 4,000 points, of 600,000")
}

// Charts leave the pool's connections to placement and log-ins.
func TestCurves_LeaveRoomForOthers(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	b.addTrials(t, pool, 5)

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // releases the waiting sessions, also when the test fails

	_, err = tx.Exec(t.Context(), `LOCK TABLE metrics IN ACCESS EXCLUSIVE MODE`) // so that charts take their time
	require.NoError(t, err)

	const charts = 10 // the pool has 8 connections

	ended := make(chan error, charts)

	for range charts {
		go func() {
			_, err := b.store.Curves(t.Context(), b.sweep, "loss", []int{1, 2}, 400)
			ended <- err
		}()
	}

	require.Eventually(t, func() bool {
		var waiting int

		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'metrics'::regclass`).Scan(&waiting)

		return err == nil && waiting >= 2
	}, 30*time.Second, time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	_, err = b.store.GetSweep(ctx, b.sweep)
	require.NoError(t, err, "it waits for no chart")
	require.NoError(t, tx.Rollback(t.Context()))

	for range charts {
		if err := <-ended; err != nil {
			require.Equal(t, berth.KindUnavailable, berth.KindOf(err), err)
		}
	}
}
