package postgres_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
	"github.com/berthml/berth/internal/store/postgres"
)

// points are a sawtooth of n finite points with a step of 3.
func points(name string, n int) []berth.MetricPoint {
	out := make([]berth.MetricPoint, n)
	for i := range out {
		out[i] = berth.MetricPoint{Name: name, Step: int64(i * 3), Value: float64(i * 37 % 101), Status: berth.MetricFinite, At: time.Now()}
	}

	return out
}

// reports places an attempt that reports points.
func (b *bundle) reports(t *testing.T, r berth.PlacementRequest, points ...berth.MetricPoint) {
	t.Helper()
	require.NoError(t, b.store.PutMetrics(t.Context(), r.AttemptID, b.place(t, r).Token, points))
}

// shortProbe is the request for a short probe of a trial, as its second attempt.
func (b *bundle) shortProbe(t *testing.T, r berth.PlacementRequest) berth.PlacementRequest {
	t.Helper()

	r.Purpose, r.Short = berth.PurposeProbe, true

	return b.again(t, r, 2)
}

func (b *bundle) curves(t *testing.T, name string, trials ...int) []berth.Curve {
	t.Helper()

	curves, err := b.store.Curves(t.Context(), b.sweep, name, trials, 40)
	require.NoError(t, err)

	return curves
}

func TestCurves(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first := b.request(t, gib)
	reported := points("loss", 500)
	reported = append(reported, berth.MetricPoint{Name: "loss", Step: 9001, Value: math.NaN(), Status: berth.MetricNaN, At: time.Now()},
		berth.MetricPoint{Name: "loss", Step: 9000, Value: math.Inf(1), Status: berth.MetricPosInfinity, At: time.Now()})
	b.reports(t, first, append(reported, points("accuracy", 2)...)...)
	b.reports(t, b.request(t, gib), points("loss", 3)...)
	b.request(t, gib) // waits

	curves := b.curves(t, "loss", 2, 1, 3, 77)
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

	curves = b.curves(t, "odd", 1)
	require.Len(t, curves, 1)
	require.Empty(t, curves[0].Points)

	names, err := b.store.MetricNames(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricName{{Name: "accuracy", Trials: 1, LastStep: 3}, {Name: "loss", Trials: 2, LastStep: 9001}}, names)
}

// What a short probe reports is no curve; a newer attempt takes the place of an older one.
func TestCurves_OfTheAttemptThatCounts(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first := b.request(t, gib)
	b.reports(t, first, points("loss", 5)...)
	b.end(t, first)

	short := b.shortProbe(t, first)
	b.reports(t, short, points("short", 9)...)

	curves := b.curves(t, "loss", 1)
	require.Len(t, curves, 1)
	require.Equal(t, first.AttemptID, curves[0].AttemptID)
	require.Len(t, curves[0].Points, 5)

	names, err := b.store.MetricNames(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, []berth.MetricName{{Name: "loss", Trials: 1, LastStep: 12}}, names)

	b.end(t, short)

	third := b.again(t, first, 3)
	b.reports(t, third, points("loss", 2)...)

	curves = b.curves(t, "loss", 1)
	require.Equal(t, third.AttemptID, curves[0].AttemptID)
	require.Len(t, curves[0].Points, 2)
}

// What a page reads does not grow with the sweep: names come from its newest trials, by steps through an index.
func TestCurves_OfALargeSweep(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.addTrials(t, 2000)
	b.exec(t, `INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT a.id, 'long', step, sin(step / 50.0), 'finite', now() FROM attempts a JOIN trials t ON t.id = a.trial_id, generate_series(1, 4000) step
		WHERE a.number = 2 AND t.number <= 50`)
	b.exec(t, `ANALYZE metrics`)

	names, err := b.store.MetricNames(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, []string{"accuracy", "loss"}, []string{names[0].Name, names[1].Name})
	require.Equal(t, berth.MostNamedTrials, names[0].Trials)
	b.store.Close()

	read := b.rowsRead(t, "metrics", func(store *postgres.Store) {
		curves, err := store.Curves(t.Context(), b.sweep, "long", []int{1, 2}, 400)
		require.NoError(t, err)
		require.Len(t, curves, 2)

		for _, c := range curves {
			require.LessOrEqual(t, len(c.Points), 400)
			require.True(t, slices.ContainsFunc(c.Points, func(p berth.CurvePoint) bool { return p.Step == 4000 }))
		}
	})
	require.LessOrEqual(t, read, 9000, "two curves of 4,000 points, of 200,000")
}

// Charts leave the pool's connections to placement and log-ins.
func TestCurves_LeaveRoomForOthers(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.addTrials(t, 5)

	tx, err := b.pool.Begin(t.Context())
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
		return number[int](t, b.pool, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'metrics'::regclass`) >= 2
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
