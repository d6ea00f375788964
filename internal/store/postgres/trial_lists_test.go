package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// addTrials writes n trials of the bundle's sweep in all states. A trial that ran
// has an attempt and ten points of two metrics; a waiting one has a request. Many
// have the same value and the same duration.
func (b *bundle) addTrials(t *testing.T, n int) {
	t.Helper()

	for _, statement := range []string{
		`UPDATE sweeps SET spec = '{"name": "x", "objective": {"metric": "loss", "goal": "minimize"}}' WHERE id = '%[1]s'`,
		`INSERT INTO shapes (key, shape) VALUES ('listed', '{}')`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, value, started_at, finished_at)
		SELECT gen_random_uuid(), '%[1]s', n, '{"lr": 0.001, "optimizer": "adam", "width": 64}', 'listed', s.state,
			CASE WHEN s.state = 'succeeded' AND n %% 3 > 0 THEN (n * 7919 %% 1009)::double precision / 7 END,
			CASE WHEN s.state IN ('running', 'succeeded') OR s.state = 'failed' AND n %% 2 = 0 THEN '2026-11-25T00:00:00Z'::timestamptz END,
			CASE WHEN s.state IN ('succeeded', 'failed', 'infeasible') THEN '2026-11-25T00:00:00.000001Z'::timestamptz + n * 31 %% 97 * interval '1.7 seconds' END
		FROM generate_series(1, %[3]d) n, LATERAL (
			SELECT (ARRAY['succeeded', 'running', 'succeeded', 'failed', 'waiting', 'succeeded', 'infeasible', 'pending'])[1 + n * 5 %% 8] AS state) s`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, device_bytes, memory_peak_bytes, failure_kind, finished_at)
		SELECT gen_random_uuid(), id, a, 'main', 'run', 'finished', '%[2]s', nextval('lease_tokens'), 1000 * a, 1, 10 * a, 500 * a, 'ok', now()
		FROM trials, generate_series(1, 2) a WHERE shape_key = 'listed' AND started_at IS NOT NULL`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT a.id, m, step, step / 10.0, 'finite', now() FROM attempts a, unnest(ARRAY['accuracy', 'loss']) m, generate_series(1, 5) step WHERE a.number = 2`,
		`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, requested_at)
		SELECT gen_random_uuid(), sweep_id, id, 'w', 1, 'main', 'run', shape_key, 1, 1, '2026-11-25T01:00:00Z' FROM trials WHERE state = 'waiting'`,
		`VACUUM ANALYZE`,
	} {
		b.exec(t, fmt.Sprintf(statement+" -- %[1]s %[2]s %[3]d", b.sweep, b.host.ID, n))
	}
}

// trialSorts are the sorts of lists, each with its ORDER BY for one statement.
var trialSorts = map[string]string{
	"number": "number", "-number": "number DESC", "value": "value NULLS LAST, number", "-value": "value DESC NULLS LAST, number",
	"duration":  "finished_at - started_at IS NULL, CASE WHEN finished_at - started_at IS NOT NULL THEN state <> 'succeeded' END, finished_at - started_at, number",
	"-duration": "finished_at - started_at IS NULL, CASE WHEN finished_at - started_at IS NOT NULL THEN state <> 'succeeded' END, finished_at - started_at DESC, number",
}

// Pages together, and exports, are what one statement returns.
func TestPageTrials_AsOneStatement(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.addTrials(t, 200)
	b.exec(t, "UPDATE trials SET stage_keys = ARRAY['ff', '0a1b2c'], stage_shapes = ARRAY['s', 's'] WHERE number % 3 = 1")

	for where, filter := range map[string]berth.TrialFilter{
		"true": {}, "state IN ('failed', 'running', 'succeeded')": {States: []berth.TrialState{berth.TrialFailed, berth.TrialRunning, berth.TrialSucceeded}},
		"value >= 50": {ValueMin: new(50.0)}, "value <= 50": {ValueMax: new(50.0)},
		"value BETWEEN 20 AND 90.5 AND state = 'succeeded'": {ValueMin: new(20.0), ValueMax: new(90.5), States: []berth.TrialState{berth.TrialSucceeded}},
		"false": {ValueMin: new(1e9)}, "number % 3 = 1": {Stage: "0a1b"},
	} {
		exported, err := b.store.ExportTrials(t.Context(), b.sweep, filter, 0, 500)
		require.NoError(t, err)

		got := []int{}
		for _, trial := range exported {
			got = append(got, trial.Number)
		}

		require.Equal(t, column[int](t, b.pool, "SELECT number FROM trials WHERE "+where+" ORDER BY number"), got, "the export of %s", where)

		q := berth.TrialQuery{TrialFilter: filter, Count: true}

		for sort, order := range trialSorts {
			q.Sort = berth.ParseSort(sort)
			want := column[int](t, b.pool, "SELECT number FROM trials WHERE "+where+" ORDER BY "+order)
			require.Equal(t, where == "false", len(want) == 0, where)

			for _, q.Limit = range []int{7, 500} {
				got := []int{}

				for _, trial := range pages(t, len(want), q.Limit, func(after *berth.Position) (berth.Page[berth.ListedTrial], error) {
					q.After = after

					return b.store.PageTrials(t.Context(), b.sweep, q)
				}) {
					got = append(got, trial.Number)
				}

				require.Equal(t, want, got, "%s by %s, %d at once", where, sort, q.Limit)
			}
		}
	}
}

func TestPageTrials_ShowsTheNewestAttempt(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.addTrials(t, 16)

	list := func(metrics ...string) []berth.ListedTrial {
		page, err := b.store.PageTrials(t.Context(), b.sweep, berth.TrialQuery{Sort: berth.ParseSort("number"), Limit: 50, Metrics: metrics})
		require.NoError(t, err)
		require.Len(t, page.Rows, 16)

		return page.Rows
	}

	for _, trial := range list() {
		require.Equal(t, trial.State == berth.TrialWaiting, trial.WaitingSince != nil)
		require.Equal(t, trial.StartedAt != nil, trial.Latest != nil)

		if trial.WaitingSince != nil {
			require.Equal(t, "2026-11-25T01:00:00Z", trial.WaitingSince.Format(time.RFC3339))
		}

		if trial.Latest == nil {
			continue
		}

		require.Equal(t, 2, trial.Attempts)
		require.NotEmpty(t, trial.Latest.ID)
		require.Equal(t, berth.LatestAttempt{
			ID: trial.Latest.ID, Number: 2, Stage: berth.StageMain, State: berth.AttemptFinished, Purpose: berth.PurposeRun, HostID: b.host.ID, HostName: b.host.Name,
			MemoryBytes: 2000, DeviceBytes: 20, MemoryPeakBytes: 1000, Metric: trial.Latest.Metric,
		}, *trial.Latest)
		require.Equal(t, "loss", trial.Latest.Metric.Name, "the objective's")
		require.Equal(t, int64(5), trial.Latest.Metric.Step)
		require.InDelta(t, 0.5, trial.Latest.Metric.Value, 0)
	}

	for _, trial := range list("accuracy", "loss", "none") {
		if trial.Latest != nil {
			names := []string{trial.Latest.Metrics[0].Name, trial.Latest.Metrics[1].Name}
			require.ElementsMatch(t, []string{"accuracy", "loss"}, names)
			require.Contains(t, trial.Latest.Metrics, *trial.Latest.Metric)
		}
	}

	b.exec(t, `UPDATE sweeps SET spec = '{"name": "x"}'`)

	for _, trial := range list() {
		if trial.Latest != nil {
			require.Equal(t, "accuracy", trial.Latest.Metric.Name, "without an objective the first by name")
		}
	}
}

// A trial that ends while a list is read is in it, once, as it was or as it is.
func TestPageTrials_WhileTrialsEnd(t *testing.T) {
	t.Parallel()

	const trials = 200

	b := setup(t)
	b.exec(t, `INSERT INTO shapes (key, shape) VALUES ('ends', '{}')`)
	b.exec(t, `INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at)
		SELECT gen_random_uuid(), $1, 1000 + n, '{}', 'ends', 'running', now() FROM generate_series(1, $2::integer) n`, b.sweep, trials)

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		for n := range trials {
			_, _ = b.pool.Exec(t.Context(), `UPDATE trials SET state = 'succeeded', failure_kind = 'ok', value = $3, finished_at = now()
				WHERE sweep_id = $1 AND number = $2`, b.sweep, 1001+n, n%7)
		}
	}()

	list := func(sort string, states ...berth.TrialState) []berth.ListedTrial {
		page, err := b.store.PageTrials(t.Context(), b.sweep, berth.TrialQuery{TrialFilter: berth.TrialFilter{States: states}, Limit: 500, Sort: berth.ParseSort(sort)})
		require.NoError(t, err)

		return page.Rows
	}

	for going := true; going; {
		select {
		case <-ended:
			going = false
		default:
		}

		for _, sort := range []string{"-value", "duration"} {
			require.Len(t, list(sort, berth.TrialRunning, berth.TrialSucceeded), trials, "by %s", sort)
		}

		for _, row := range list("number", berth.TrialRunning) {
			require.Equal(t, berth.TrialRunning, row.State)
		}
	}

	require.Len(t, list("number", berth.TrialSucceeded), trials)
}

// Any page of 500 of 50,000 trials must take at most 50 ms, so it must read the
// rows of the page and not the sweep's.
func TestPageTrials_FiftyThousand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.addTrials(t, 50_000)
	b.store.Close()

	for sort := range trialSorts {
		q := berth.TrialQuery{Sort: berth.ParseSort(sort), Limit: 500}
		read := b.rowsRead(t, "trials", func(store *postgres.Store) {
			for range 8 { // PostgreSQL makes a custom plan until the sixth time
				page, err := store.PageTrials(t.Context(), b.sweep, q)
				require.NoError(t, err)
				require.Len(t, page.Rows, 500)
				q.After = page.Next
			}
		})
		require.Less(t, read, 50_000, "by %s: 8 pages of 500, with all that are equal in what they are sorted by", sort)
	}
}

// Trial times come from the newest ended trials, without canceled trials and without waits between attempts.
func TestTrialTimes(t *testing.T) {
	t.Parallel()

	b := setup(t)

	times, err := b.store.TrialTimes(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, berth.TrialTimes{}, times, "none ended")

	b.exec(t, `INSERT INTO shapes (key, shape) VALUES ('timed', '{}')`)
	b.exec(t, `INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at, finished_at)
		SELECT gen_random_uuid(), $1, n, '{}', 'timed', s, now(), CASE WHEN s <> 'running' THEN now() + d * interval '1 second' END
		FROM (SELECT n, CASE WHEN n > 480 THEN 'running' WHEN n % 100 = 0 THEN 'canceled' WHEN n % 7 = 0 THEN 'failed' ELSE 'succeeded' END AS s,
			CASE WHEN n <= 278 OR n % 100 = 0 THEN 9999 ELSE n % 4 + 1 END AS d FROM generate_series(1, 500) n) x`, b.sweep)
	// 479 waited for an hour between two attempts, which took 1 and 3 s; 499 had waited for days before its
	// running attempt.
	b.exec(t, `UPDATE trials SET finished_at = finished_at + interval '1 hour' WHERE sweep_id = $1 AND number = 479`, b.sweep)
	b.exec(t, `UPDATE trials SET started_at = now() - interval '9 days' WHERE sweep_id = $1 AND number = 499`, b.sweep)
	b.exec(t, `INSERT INTO attempts (id, trial_id, number, stage, purpose, state, failure_kind, host_id, token, memory_bytes, cpu_milli, placed_at, finished_at)
		SELECT gen_random_uuid(), t.id, x.number, 'main', 'run', x.state, x.kind, $2, 1, 1, 1, coalesce(t.finished_at, now()) + x.placed * interval '1 second',
			coalesce(t.finished_at, now()) + x.ended * interval '1 second'
		FROM trials t JOIN (VALUES (479, 1, 'finished', 'host_oom', -3604, -3603), (479, 2, 'finished', 'ok', -3, 0),
			(499, 1, 'finished', 'infra', -777600, -777000), (499, 2, 'running', '', -60, NULL), (500, 1, 'running', '', -7200, NULL)
		) x (trial, number, state, kind, placed, ended) ON x.trial = t.number WHERE t.sweep_id = $1`, b.sweep, b.host.ID)

	times, err = b.store.TrialTimes(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, berth.RecentTrials, times.Ended)
	require.InDelta(t, 2.5, times.Mean.Seconds(), 0.02)
	require.InDelta(t, 2, times.Lower.Seconds(), 0.01)
	require.InDelta(t, 2.5, times.Median.Seconds(), 0.6)
	require.InDelta(t, 4, times.Upper.Seconds(), 0.01)
	require.InDelta(t, 7200, times.Oldest.Seconds(), 60)
}
