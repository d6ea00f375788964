package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// retained is a sweep with a finished attempt that left metrics, a log and files.
type retained struct {
	*bundle

	url     string
	request berth.PlacementRequest
}

func retainedSetup(t *testing.T) *retained {
	t.Helper()

	url := pgtest.URL(t)
	r := &retained{bundle: setupOn(t, url), url: url}
	r.request = r.bundle.request(t, gib)
	status := r.place(t, r.request)

	require.NoError(t, r.store.PutMetrics(t.Context(), r.request.AttemptID, status.Token, []berth.MetricPoint{
		{Name: "acc", Step: 1, Value: 0.5, Status: berth.MetricFinite, At: time.Now()},
		{Name: "acc", Step: 2, Value: 0.6, Status: berth.MetricFinite, At: time.Now()},
	}))
	require.NoError(t, r.store.PutMemory(t.Context(), r.request.AttemptID, status.Token, []berth.MemoryPoint{{HostBytes: new(int64(gib / 2))}}))
	require.NoError(t, r.store.PutLog(t.Context(), r.request.AttemptID, status.Token, berth.LogPiece{
		Stream: "stdout", At: time.Now(), Data: []byte("0123456789"),
	}))
	require.NoError(t, r.store.FinishAttempt(t.Context(), result(r.request, status.Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "finished", Value: new(0.6), FinishedAt: time.Now(),
		Usage: berth.Usage{MemoryPeakBytes: gib / 2, Samples: 3, Wall: berth.Duration(time.Minute)},
	})))

	_, err := r.store.SetTrialState(t.Context(), berth.TrialUpdate{
		TrialID: r.request.TrialID, SweepID: r.sweep, Number: 1, State: berth.TrialSucceeded, Value: new(0.6),
	})
	require.NoError(t, err)

	return r
}

// end ends the sweep, this long ago.
func (r *retained) end(t *testing.T, ago time.Duration) {
	t.Helper()

	_, err := r.store.SetSweepState(t.Context(), r.sweep, berth.SweepSucceeded, "done")
	require.NoError(t, err)
	r.exec(t, "UPDATE sweeps SET finished_at = now() - $1::interval", ago)
}

func (r *retained) exec(t *testing.T, query string, args ...any) {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), r.url)
	require.NoError(t, err)

	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // only this statement

	_, err = conn.Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

func (r *retained) rows(t *testing.T, table string) (n int) {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), r.url)
	require.NoError(t, err)

	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // only this statement

	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))

	return n
}

// retain deletes until nothing is over its limit.
func (r *retained) retain(t *testing.T, keep berth.Retention) {
	t.Helper()

	for step := 0; ; step++ {
		failed := make(map[string]error)
		more := r.store.Retain(t.Context(), keep, failed)
		require.Empty(t, failed)

		if !more {
			return
		}

		require.Less(t, step, 100, "it finds no end")
	}
}

func TestDeleteSweep(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)

	err := r.store.DeleteSweep(t.Context(), r.sweep)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "it goes on")
	require.ErrorContains(t, err, "stop or cancel it first")

	waiting := r.bundle.request(t, gib)
	r.place(t, waiting)
	r.end(t, 0)

	err = r.store.DeleteSweep(t.Context(), r.sweep)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "a container of it may run")

	require.NoError(t, r.store.AbandonAttempt(t.Context(), waiting.AttemptID, "gone"))
	require.NoError(t, r.store.ReleaseLease(t.Context(), waiting.AttemptID, "no container"))
	require.NoError(t, r.store.DeleteSweep(t.Context(), r.sweep))

	_, err = r.store.GetSweep(t.Context(), r.sweep)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "it is not shown from this moment on")

	_, err = r.store.FindSweep(t.Context(), r.sweep[:8])
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	sweeps, err := r.store.ListSweepRecords(t.Context(), nil, time.Time{}, "", 10)
	require.NoError(t, err)
	require.Empty(t, sweeps)

	trials, err := r.store.ListTrials(t.Context(), r.sweep, nil, 0, 10)
	require.NoError(t, err)
	require.Empty(t, trials)

	listed, err := r.store.ListSweepAttempts(t.Context(), r.sweep, 0, 0, 10)
	require.NoError(t, err)
	require.Empty(t, listed)

	_, err = r.store.GetTrial(t.Context(), r.sweep, 1)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	_, err = r.store.GetAttempt(t.Context(), r.request.AttemptID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "half of a curve would look whole")

	require.Equal(t, berth.KindNotFound, berth.KindOf(r.store.DeleteSweep(t.Context(), r.sweep)))

	r.retain(t, berth.Retention{})

	for _, table := range []string{"sweeps", "trials", "attempts", "leases", "metrics", "memory_points", "log_chunks", "placement_requests"} {
		require.Zero(t, r.rows(t, table), table)
	}

	require.Equal(t, 1, r.rows(t, "footprints"), "what was measured serves other sweeps")

	asked, err := r.store.OutputRemovals(t.Context(), r.host.ID, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []berth.OutputRemoval{
		{AttemptID: r.request.AttemptID, TrialID: r.request.TrialID}, {AttemptID: waiting.AttemptID, TrialID: waiting.TrialID},
	}, asked, "its host removes the files")

	require.NoError(t, r.store.OutputsRemoved(t.Context(), r.host.ID, []string{r.request.AttemptID}, []string{waiting.AttemptID}))

	asked, err = r.store.OutputRemovals(t.Context(), r.host.ID, 10)
	require.NoError(t, err)
	require.Len(t, asked, 1, "what could not be removed is asked for again")
	require.NoError(t, r.store.OutputsRemoved(t.Context(), r.host.ID, []string{waiting.AttemptID}, nil))

	asked, err = r.store.OutputRemovals(t.Context(), r.host.ID, 10)
	require.NoError(t, err)
	require.Empty(t, asked)
}

func TestRetain(t *testing.T) {
	t.Parallel()

	const month = 30 * 24 * time.Hour

	all := map[string]int{"sweeps": 1, "trials": 1, "attempts": 1, "metrics": 2, "memory_points": 1, "log_chunks": 1, "output_removals": 0}
	gone := map[string]int{"sweeps": 0, "trials": 0, "attempts": 0, "metrics": 0, "memory_points": 0, "log_chunks": 0, "output_removals": 1}

	for _, tt := range []struct {
		name  string
		ended time.Duration // ago; negative = it goes on
		keep  berth.Retention
		left  map[string]int // rows left; missing tables are unchanged
	}{
		{"no limit deletes nothing", 100 * month, berth.Retention{}, nil},
		{"sweeps", 2 * month, berth.Retention{Sweeps: month}, gone},
		{"younger sweeps stay", month / 2, berth.Retention{Sweeps: month, Outputs: month}, nil},
		{"what goes on stays", -1, berth.Retention{Sweeps: 1, Outputs: 1}, nil},
		{"outputs", 2 * month, berth.Retention{Outputs: month}, map[string]int{"output_removals": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := retainedSetup(t)
			if tt.ended >= 0 {
				r.end(t, tt.ended)
			}

			r.retain(t, tt.keep)
			r.retain(t, tt.keep) // once more changes nothing

			for table, n := range all {
				if left, changed := tt.left[table]; changed {
					n = left
				}

				require.Equal(t, n, r.rows(t, table), table)
			}

			if r.rows(t, "sweeps") == 0 {
				require.Equal(t, 1, r.rows(t, "audit_log WHERE actor = 'berth' AND action = 'REMOVE' AND object = '/sweeps/"+r.sweep+"' AND result LIKE '%30 days%--keep-sweeps%'"))

				return
			}

			trial, err := r.store.GetTrial(t.Context(), r.sweep, 1)
			require.NoError(t, err)
			require.InDelta(t, 0.6, *trial.Value, 0, "the result stays")
		})
	}
}

// The newest event stays: otherwise a stream that has read all would seem to
// have missed events.
func TestRetain_EventsAndAudit(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	for range 3 {
		require.NoError(t, r.store.Audit(t.Context(), berth.AuditEntry{Actor: "a", Action: "POST", Object: "/", IP: "::1", Result: "200"}))
	}

	_, err := r.store.PublishEvents(t.Context(), 100)
	require.NoError(t, err)

	_, last, err := r.store.EventRange(t.Context())
	require.NoError(t, err)

	r.retain(t, berth.Retention{})
	require.Equal(t, 3, r.rows(t, "audit_log"), "they are young")

	r.exec(t, "UPDATE audit_log SET at = now() - interval '366 days' WHERE id < (SELECT max(id) FROM audit_log)")
	r.exec(t, "UPDATE events SET created_at = now() - interval '25 hours'")
	r.retain(t, berth.Retention{})
	require.Equal(t, 1, r.rows(t, "audit_log"))

	first, still, err := r.store.EventRange(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{last, last}, []int64{first, still})
}

// A deleted sweep goes in few steps, and by trials: the points of later ones are there until earlier trials are gone, so
// that no step looks through what others deleted.
func TestRetain_DeletesASweepByItsTrials(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	r.end(t, time.Hour)

	for _, statement := range []string{
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, finished_at)
		SELECT gen_random_uuid(), sweep_id, n, params, shape_key, state, failure_kind, finished_at FROM trials, generate_series(2, 150) n WHERE number = 1`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, finished_at)
		SELECT t.id, t.id, 1, 'main', 'run', 'finished', h.id, nextval('lease_tokens'), 1, 1, 'ok', now() FROM trials t, hosts h WHERE t.number > 1`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at) SELECT id, 'loss', n, 1, 'finite', now() FROM attempts, generate_series(1, 140) n`,
	} {
		r.exec(t, statement)
	}

	require.NoError(t, r.store.ReleaseLease(t.Context(), r.request.AttemptID, "removed"))
	require.NoError(t, r.store.DeleteSweep(t.Context(), r.sweep))

	steps := 0
	for r.rows(t, "trials") == 150 {
		require.True(t, r.store.Retain(t.Context(), berth.Retention{}, map[string]error{}))

		steps++
	}

	require.Equal(t, 50*140, r.rows(t, "metrics"))

	for r.store.Retain(t.Context(), berth.Retention{}, map[string]error{}) {
		steps++
	}

	require.Zero(t, r.rows(t, "sweeps"))
	require.LessOrEqual(t, steps, 12)
}

// sized ends the current sweep, so long ago, with one attempt of so many metric
// points, and goes on with the next.
func (r *retained) sized(t *testing.T, ago time.Duration, points int) (sweep string) {
	t.Helper()

	sweep = r.sweep
	r.exec(t, `INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT $1, 'loss', n, 0.5, 'finite', now() FROM generate_series(1, $2::integer) n`, r.finished(t).AttemptID, points)
	r.exec(t, "UPDATE sweeps SET state = 'succeeded', finished_at = now() - $1::interval WHERE id = $2", ago, sweep)
	r.next(t)

	return sweep
}

// many adds attempts to the sweep's first trial.
func (r *retained) many(t *testing.T, n int) {
	t.Helper()

	r.exec(t, `INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, failure_kind, finished_at, memory_bytes, cpu_milli)
		SELECT gen_random_uuid(), trial_id, n, stage, purpose, state, host_id, token, 'infra', finished_at, memory_bytes, cpu_milli
		FROM attempts, generate_series(2, $1::integer + 1) n WHERE id = $2`, n, r.request.AttemptID)
}

// One statement never asks for the files of a whole large sweep: it would time
// out each time, and nothing of the sweep would go.
func TestRetain_AsksForFilesInSteps(t *testing.T) {
	t.Parallel()

	const attempts = 4500

	for name, keep := range map[string]berth.Retention{"deleted": {}, "too old": {Outputs: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := retainedSetup(t)
			r.many(t, attempts-1)
			r.end(t, 2*time.Hour)

			if name == "deleted" {
				require.NoError(t, r.store.DeleteSweep(t.Context(), r.sweep))
			}

			require.True(t, r.store.Retain(t.Context(), keep, map[string]error{}))
			require.Equal(t, 2000, r.rows(t, "output_removals"))

			r.retain(t, keep)
			require.Equal(t, attempts, r.rows(t, "output_removals"))

			if name == "deleted" {
				require.Zero(t, r.rows(t, "sweeps"))
			} else {
				require.Equal(t, 1, r.rows(t, "sweeps WHERE outputs_removed_at IS NOT NULL"))
				require.Equal(t, 1, r.rows(t, "audit_log WHERE result LIKE '500 attempts: %--keep-outputs)'"))
			}
		})
	}
}

// A failing part is left out of the look, and does not prevent other deletions.
// Health reports it until it works.
func TestRetain_GoesOnBesideWhatFails(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := retainedSetup(t)
	r.end(t, 2*time.Hour)
	broken := r.sweep
	r.next(t)
	whole := r.sized(t, 3*time.Hour, 3000)

	r.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'page is damaged'; END $$`)
	r.exec(t, `CREATE TRIGGER refuse BEFORE DELETE ON log_chunks FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, r.store.DeleteSweep(ctx, broken))
	require.NoError(t, r.store.DeleteSweep(ctx, whole))

	failed := make(map[string]error)
	for step := 0; r.store.Retain(ctx, berth.Retention{}, failed); step++ {
		require.Less(t, step, 100, "it finds no end")
	}

	require.Len(t, failed, 1)
	require.ErrorContains(t, failed["rows of sweep "+broken], "page is damaged")
	require.Equal(t, 1, r.rows(t, "sweeps WHERE deleted_at IS NOT NULL"), "the other one is gone")

	for _, problem := range []string{"page is damaged", ""} {
		require.NoError(t, r.store.NoteRetention(ctx, problem))

		health, err := r.store.Health(ctx)
		require.NoError(t, err)
		require.Equal(t, problem, health.Retention)
	}

	r.exec(t, "DROP TRIGGER refuse ON log_chunks")
	r.retain(t, berth.Retention{})
	require.Zero(t, r.rows(t, "sweeps WHERE deleted_at IS NOT NULL"))
}

// A look that is cut short has not failed.
func TestRetain_IsNoFailureWhenTimeIsUp(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	failed := make(map[string]error)
	require.False(t, setup(t).store.Retain(ctx, berth.Retention{Sweeps: time.Hour}, failed))
	require.Empty(t, failed)
}

// After its sweep was deleted the same submission makes a new one.
func TestDeleteSweep_FreesItsKey(t *testing.T) {
	t.Parallel()

	r := retainedSetup(t)
	submit := func() (string, bool) {
		id, created, err := r.store.CreateSweep(t.Context(), berth.NewSweep{
			ID: uuid.NewString(), Spec: berth.Spec{Name: "s"}, ImageDigest: "sha256:x", CreatedBy: "local", Route: "r", Key: "k", BodyHash: []byte("b"),
		})
		require.NoError(t, err)

		return id, created
	}

	first, created := submit()
	require.True(t, created)

	again, created := submit()
	require.False(t, created)
	require.Equal(t, first, again)

	_, err := r.store.SetSweepState(t.Context(), first, berth.SweepFailed, "")
	require.NoError(t, err)
	require.NoError(t, r.store.DeleteSweep(t.Context(), first))

	second, created := submit()
	require.True(t, created)

	_, err = r.store.GetSweep(t.Context(), second)
	require.NoError(t, err)
}

// Removing a sweep that has neither logs nor points reads no rows of other sweeps, however many there are.
func TestRetain_ReadsNoRowsOfOtherSweeps(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	pool := openPool(t, url)
	others := b.sized(t, gib, 500).sweep

	seed, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)

	pid := seed.PgConn().PID()

	for _, statement := range []string{
		`INSERT INTO shapes (key, shape) VALUES ('past', '{}')`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, value, started_at, finished_at)
		SELECT gen_random_uuid(), CASE WHEN n <= 400 THEN '%[3]s' ELSE '%[1]s' END::uuid, n, '{}', 'past', 'succeeded', 'ok', n, now(), now()
		FROM generate_series(1, 500) n`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, finished_at)
		SELECT gen_random_uuid(), id, 1, 'main', 'run', 'finished', '%[2]s', nextval('lease_tokens'), 1, 1, 'ok', now() FROM trials`,
		`INSERT INTO memory_points SELECT a.id, s, 1, 1, 1 FROM attempts a JOIN trials t ON t.id = a.trial_id AND t.sweep_id = '%[1]s', generate_series(1, 400) s`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at) SELECT attempt_id, 'loss', at_second, 1, 'finite', now() FROM memory_points`,
		`INSERT INTO log_chunks (attempt_id, "offset", stream, at, data) SELECT attempt_id, at_second, 'stdout', now(), 'x' FROM memory_points`,
		`UPDATE sweeps SET state = 'canceled', finished_at = now() - interval '40 days' WHERE id = '%[3]s'`,
		`ANALYZE`,
	} {
		_, err := seed.Exec(t.Context(), fmt.Sprintf(statement+" -- %[1]s %[2]s %[3]s", others, b.host.ID, b.sweep))
		require.NoError(t, err)
	}

	require.NoError(t, seed.Close(t.Context()))
	require.Eventually(t, func() bool { // PostgreSQL counts a session's reads some time after they end
		var there bool

		return pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)", pid).Scan(&there) == nil && !there
	}, 30*time.Second, 10*time.Millisecond)

	read := func() map[string]int64 {
		rows, err := pool.Query(t.Context(), `SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables
			WHERE relname IN ('memory_points', 'metrics', 'log_chunks')`)
		require.NoError(t, err)

		counts := make(map[string]int64)

		var (
			table string
			n     int64
		)

		_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error { counts[table] = n; return nil })
		require.NoError(t, err)
		require.Len(t, counts, 3)

		return counts
	}
	before := read()

	failed := map[string]error{}
	for b.store.Retain(t.Context(), berth.Retention{Sweeps: 30 * 24 * time.Hour}, failed) {
	}

	require.Empty(t, failed)
	b.store.Close() // PostgreSQL counts what a connection did when that has ended
	require.Eventually(t, func() bool {
		var others int

		return pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others) == nil && others == 0
	}, 30*time.Second, 10*time.Millisecond)

	require.Zero(t, (&retained{bundle: b, url: url}).rows(t, "sweeps WHERE id = '"+b.sweep+"'"))

	for table, rows := range read() {
		require.Less(t, rows-before[table], int64(1000), "rows of %s that are of other sweeps, of 40,000", table)
	}
}
