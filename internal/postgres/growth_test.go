package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// past is how many trials a grown ledger holds that ended long ago.
const past = 4000

// grow writes past trials of the bundle's sweep, with all their rows, and lets
// PostgreSQL analyze its tables as it does from time to time.
func (b *bundle) grow(t *testing.T, url string) {
	t.Helper()

	pool := openPool(t, url)
	defer pool.Close()

	for _, statement := range []string{
		`INSERT INTO shapes (key, shape) VALUES ('past', '{}')`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, value, started_at, finished_at)
		SELECT gen_random_uuid(), '%[1]s', n, '{}', 'past', 'succeeded', 'ok', n %% 100, now(), now() FROM generate_series(1, %[3]d) n`,
		`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key,
			memory_bytes, cpu_milli, state, decided_at)
		SELECT gen_random_uuid(), sweep_id, id, 'w', 1, 'main', 'run', shape_key, 1, 1, 'placed', now() FROM trials`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, finished_at)
		SELECT attempt_id, trial_id, number, stage, purpose, 'finished', '%[2]s', nextval('lease_tokens'), 1, 1, 'ok', now() FROM placement_requests`,
		`INSERT INTO leases (attempt_id, sweep_id, host_id, memory_bytes, cpu_milli, state, expires_at, released_at, proof)
		SELECT attempt_id, sweep_id, '%[2]s', 1, 1, 'released', now(), now(), 'container exited' FROM placement_requests`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT attempt_id, 'acc', step, 0, 'finite', now() FROM placement_requests, generate_series(1, 3) step`,
		`INSERT INTO memory_points (attempt_id, at_second, host_bytes) SELECT attempt_id, second, 1 FROM placement_requests, generate_series(1, 3) second`,
		`INSERT INTO events (sequence, kind, sweep_id, subject)
		SELECT nextval('event_sequence'), 'trial.state', '%[1]s', 'x' FROM generate_series(1, 4 * %[3]d)`,
		`INSERT INTO events (kind, subject) SELECT 'trial.state', 'x' FROM generate_series(1, 200)`,
		`ANALYZE`,
	} {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(statement+" -- %[1]s %[2]s %[3]d", b.sweep, b.host.ID, past))
		require.NoError(t, err)
	}

	b.trial = past
}

// round takes the bundle's next trial from its suggestion to its end, with
// every query of the server, placer and worker on the way.
func (b *bundle) round(t *testing.T) {
	t.Helper()

	ctx := t.Context()
	must := func(err error) { t.Helper(); require.NoError(t, err) }

	r := b.request(t, gib)
	_, err := b.store.PlannedTrial(ctx, b.sweep, b.trial)
	must(err)

	_, err = b.store.SuspectLeases(ctx)
	must(err)

	q, err := b.store.Queue(ctx, 100)
	waiting := q.Waiting
	must(err)
	require.Len(t, waiting, 1)
	must(b.store.StoreReasons(ctx, map[string]berth.Wait{r.AttemptID: {Reasons: []berth.Rejection{{HostName: "a", Reason: "full"}}}}))

	token := b.place(t, r).Token
	_, err = b.store.Assignee(ctx, r.AttemptID)
	must(err)

	now := time.Now()
	must(b.store.AttemptRunning(ctx, r.AttemptID, token, "c", now))
	_, err = b.store.HostLeases(ctx, b.host.ID)
	must(err)
	must(b.store.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, []berth.SeenAttempt{{AttemptID: r.AttemptID, Token: token}}))

	_, err = b.store.ListMachine(ctx, b.host.ID, time.Hour, time.Minute)
	must(err)

	must(b.store.PutMemory(ctx, r.AttemptID, token, []berth.MemoryPoint{{HostBytes: new(int64(gib))}}))
	_, err = b.store.ListMemory(ctx, r.AttemptID)
	must(err)
	must(b.store.PutMetrics(ctx, r.AttemptID, token, []berth.MetricPoint{{Name: "acc", Step: 1, Value: 0.5, Status: berth.MetricFinite, At: now}}))
	must(b.store.FinishAttempt(ctx, result(r, token, berth.Outcome{
		Kind: berth.FailureOK, Message: "ok", Value: new(0.9), StartedAt: now, FinishedAt: now,
		Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 3},
	})))
	_, err = b.store.SetTrialState(ctx, berth.TrialUpdate{
		TrialID: r.TrialID, SweepID: b.sweep, Number: b.trial, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(0.9),
	})
	must(err)

	_, err = b.store.TrialTimes(ctx, b.sweep)
	must(err)

	_, err = b.store.EndedTrials(ctx, b.sweep, []int{b.trial})
	must(err)

	b.outbox(t)
	_, err = b.store.PublishEvents(ctx, 500)
	must(err)

	first, last, err := b.store.EventRange(ctx)
	must(err)
	require.Less(t, first, last)
	_, err = b.store.ListEvents(ctx, last-10, []string{b.sweep}, 100)
	must(err)

	_, err = b.store.ListTrials(ctx, b.sweep, nil, b.trial-20, 50)
	must(err)
}

// A trial must cost the same whether it is a sweep's tenth or its hundred
// thousandth: nothing on its way reads a table that grows from end to end.
// Only the summary of a sweep, which counts its trials, does.
func TestQueries_DoNotReadWholeTables(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	b.grow(t, url)
	b.store.Close()

	looker := openPool(t, url)
	before := scans(t, looker)
	b.store = open(t, url)

	for range 10 { // PostgreSQL makes a custom plan until the sixth time
		b.round(t)
	}

	b.store.Close()
	require.Equal(t, before, scans(t, looker), "scans of the whole table")
}

// What pages and deletions ask of one small sweep, and placement of all GPUs, costs the
// same beside a long history.
func TestPages_DoNotReadWholeTables(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b := setupOn(t, url)
	b.host.Devices = []berth.Device{{ID: "GPU-1", HostID: b.host.ID, Model: "H200", Mode: berth.SharingTimeSlicing, MemoryBytes: gib, MaxContexts: 4}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	b.grow(t, url)
	pgtest.Exec(t, url, "UPDATE attempts SET finished_at = now() - interval '1 month', started_at = now() - interval '2 months'", "VACUUM ANALYZE")

	small := uuid.NewString()
	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{ID: small, Spec: berth.Spec{Name: "small"}, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)

	b.sweep, b.trial = small, 0
	r := b.request(t, gib)
	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, b.place(t, r).Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "ok", StartedAt: time.Now(), FinishedAt: time.Now(),
	})))
	b.store.Close()

	looker := openPool(t, url)
	before := scans(t, looker)
	b.store = open(t, url)

	for range 10 { // PostgreSQL makes a custom plan until the sixth time
		_, err := b.store.ReportInput(t.Context(), small)
		require.NoError(t, err)

		_, err = b.store.RecentUsage(t.Context(), r.ShapeKey)
		require.NoError(t, err)

		_, err = b.store.RecentHosts(t.Context())
		require.NoError(t, err)

		_, err = b.store.OldestOutputs(t.Context(), uuid.NewString(), nil, 100)
		require.NoError(t, err)
	}

	gone := uuid.NewString()
	pgtest.Exec(t, url, fmt.Sprintf(`INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, finished_at, deleted_at)
		VALUES ('%s', 'gone', '{}', 'sha256:x', 'local', 'succeeded', now(), now())`, gone))
	pgtest.Exec(t, url, fmt.Sprintf("DELETE FROM sweeps WHERE id = '%s'", gone)) // as the last step of a deletion

	b.store.Close()
	require.Equal(t, before, scans(t, looker), "scans of the whole table")
}

// scans counts how often each table that grows was read from end to end. What
// a connection did is counted for certain only once it is gone, so the pool's
// must be the only one.
func scans(t *testing.T, pool *pgxpool.Pool) map[string]int64 {
	t.Helper()

	require.Eventually(t, func() bool { return alone(t, pool) }, 20*time.Second, 20*time.Millisecond)

	rows, err := pool.Query(t.Context(), `SELECT relname, seq_scan FROM pg_stat_user_tables
		WHERE relname IN ('trials', 'placement_requests', 'attempts', 'leases', 'events', 'metrics', 'memory_points')`)
	require.NoError(t, err)

	var (
		table string
		n     int64
		all   = make(map[string]int64)
	)

	for rows.Next() {
		require.NoError(t, rows.Scan(&table, &n))
		all[table] = n
	}

	require.NoError(t, rows.Err())

	return all
}

// alone reports whether the pool's is the only connection.
func alone(t *testing.T, pool *pgxpool.Pool) bool {
	t.Helper()

	var n int

	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&n))

	return n == 0
}
