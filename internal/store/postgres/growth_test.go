package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// past is how many trials a grown ledger holds that ended long ago.
const past = 4000

// grow writes past trials of the bundle's sweep, with all their rows, and lets
// PostgreSQL analyze its tables as it does from time to time.
func (b *bundle) grow(t *testing.T) {
	t.Helper()

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
		`UPDATE attempts SET finished_at = now() - interval '1 month', started_at = now() - interval '2 months'`,
		`ANALYZE`,
	} {
		b.exec(t, fmt.Sprintf(statement+" -- %[1]s %[2]s %[3]d", b.sweep, b.host.ID, past))
	}

	b.trial = past
}

// round takes the bundle's next trial from its suggestion to its end, with
// every query of the server, placer and worker on the way.
func (b *bundle) round(t *testing.T) {
	t.Helper()

	ctx := t.Context()
	must := func(errs ...error) { t.Helper(); require.NoError(t, errors.Join(errs...)) }

	r := b.request(t, gib)
	_, noPlan := b.store.PlannedTrial(ctx, b.sweep, b.trial, berth.StageMain)
	_, noSuspects := b.store.SuspectLeases(ctx)
	must(noPlan, noSuspects)
	require.Len(t, b.queue(t).Waiting, 1)
	must(b.store.StoreReasons(ctx, map[string]berth.Wait{r.AttemptID: {Reasons: []berth.Rejection{{HostName: "a", Reason: "full"}}}}))

	token, now := b.place(t, r).Token, time.Now()
	must(b.store.AttemptRunning(ctx, r.AttemptID, token, "c", now))
	b.touch(t, berth.HostFree{MemoryBytes: gib}, berth.SeenAttempt{AttemptID: r.AttemptID, Token: token})

	_, noAssignee := b.store.Assignee(ctx, r.AttemptID)
	_, noLeases := b.store.HostLeases(ctx, b.host.ID)
	_, noMachine := b.store.ListMachine(ctx, b.host.ID, time.Hour, time.Minute)
	must(noAssignee, noLeases, noMachine, b.store.PutMemory(ctx, r.AttemptID, token, []berth.MemoryPoint{{HostBytes: new(int64(gib))}}),
		b.store.PutMetrics(ctx, r.AttemptID, token, []berth.MetricPoint{{Name: "acc", Step: 1, Value: 0.5, Status: berth.MetricFinite, At: now}}))

	b.finish(t, r, berth.Outcome{Kind: berth.FailureOK, Value: new(0.9), StartedAt: now, Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 3}})
	b.settle(t, r, berth.TrialSucceeded, berth.FailureOK, new(0.9))
	b.outbox(t)

	_, noMemory := b.store.ListMemory(ctx, r.AttemptID)
	_, noTimes := b.store.TrialTimes(ctx, b.sweep)
	_, noEnded := b.store.EndedTrials(ctx, b.sweep, []int{b.trial})
	_, noPublished := b.store.PublishEvents(ctx, 500)
	first, last, noRange := b.store.EventRange(ctx)
	must(noMemory, noTimes, noEnded, noPublished, noRange)
	require.Less(t, first, last)

	_, noEvents := b.store.ListEvents(ctx, last-10, []string{b.sweep}, 100)
	_, noTrials := b.store.ListTrials(ctx, b.sweep, nil, b.trial-20, 50)
	must(noEvents, noTrials)
}

// A trial must cost the same whether it is a sweep's tenth or its hundred
// thousandth: nothing on its way reads a table that grows from end to end. Nor do
// pages of one small sweep, the placement of all GPUs and deletions. Only the summary
// of a sweep, which counts its trials, does.
func TestQueries_DoNotReadWholeTables(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1")
	b.grow(t)

	small := b.another(t, berth.Resources{})
	r := small.request(t, gib)
	small.runs(t, r, berth.FailureOK, gib)

	gone := uuid.NewString()
	b.exec(t, `INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, finished_at, deleted_at)
		VALUES ($1, 'gone', '{}', 'sha256:x', 'local', 'succeeded', now(), now())`, gone)
	b.store.Close()

	before := b.scans(t)
	b.store = open(t, b.url)

	for range 10 { // PostgreSQL makes a custom plan until the sixth time
		b.round(t)

		_, noReport := b.store.ReportInput(t.Context(), small.sweep)
		_, noUsage := b.store.RecentUsage(t.Context(), r.ShapeKey)
		_, noHosts := b.store.RecentHosts(t.Context())
		_, noOutputs := b.store.OldestOutputs(t.Context(), uuid.NewString(), 100)
		require.NoError(t, errors.Join(noReport, noUsage, noHosts, noOutputs))
	}

	b.exec(t, "DELETE FROM sweeps WHERE id = $1", gone) // as the last step of a deletion
	b.store.Close()
	require.Equal(t, before, b.scans(t), "scans of the whole table")
}

// scans counts how often each table that grows was read from end to end.
func (b *bundle) scans(t *testing.T) map[string]int64 {
	t.Helper()

	return b.reads(t, "seq_scan", "trials", "placement_requests", "attempts", "leases", "events", "metrics", "memory_points")
}

// tupleReads counts the rows of a table that were read, by any kind of scan.
const tupleReads = "seq_tup_read + coalesce(idx_tup_fetch, 0)"

// rowsRead is how many rows of a table a separate store reads.
func (b *bundle) rowsRead(t *testing.T, table string, read func(*postgres.Store)) int {
	t.Helper()

	before := b.reads(t, tupleReads, table)[table]
	store := open(t, b.url)
	read(store)
	store.Close()

	return int(b.reads(t, tupleReads, table)[table] - before)
}

// reads are PostgreSQL's counts of tables. What a connection did is counted for certain
// only once it is gone, so it waits until one connection of the pool is the only one.
func (b *bundle) reads(t *testing.T, what string, tables ...string) map[string]int64 {
	t.Helper()

	b.pool.Reset()
	require.Eventually(t, func() bool {
		return number[int](t, b.pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`) == 0
	}, 20*time.Second, 20*time.Millisecond)

	counts := make(map[string]int64)
	for _, table := range tables {
		counts[table] = number[int64](t, b.pool, "SELECT "+what+" FROM pg_stat_user_tables WHERE relname = $1", table)
	}

	return counts
}
