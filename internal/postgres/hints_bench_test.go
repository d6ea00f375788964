package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

const (
	benchPast = 50_000 // trials that ended
	benchLive = 5000   // attempts that run, and as many that wait
	benchAsk  = 1000   // hints at once, as api gives them
)

// BenchmarkHints times what a server with streams that ask for hints reads in 2 s, on a
// ledger of 50,000 trials that ended, 5,000 that run and 5,000 that wait: the marks of all
// sweeps, of one without trials, and what 1,000 marks that changed are about.
func BenchmarkHints(b *testing.B) {
	url := durable(b)
	store := open(b, url)
	f := newFleet(b, url)
	f.live(b)

	timed := func(read func()) float64 {
		begun := time.Now()

		for range 10 {
			read()
		}

		return float64(time.Since(begun).Microseconds()) / 10_000
	}
	marks := func(sweeps ...string) (all []berth.Mark) {
		all, err := store.ListMarks(b.Context(), sweeps)
		require.NoError(b, err)

		return all
	}

	require.Len(b, marks(), 3*benchLive+fleetHosts)

	for b.Loop() {
		changed := marks()[:benchAsk]

		b.ReportMetric(timed(func() { marks() }), "ms/marks")
		b.ReportMetric(timed(func() { marks(uuid.NewString()) }), "ms/marks-of-no-trials")
		b.ReportMetric(timed(func() {
			hints, err := store.ListHints(b.Context(), changed)
			require.NoError(b, err)
			require.Len(b, hints, benchAsk)
		}), "ms/1000-hints")
	}
}

// live writes the trials of the benchmark, and lets those that run report a few times.
func (f *fleet) live(b *testing.B) {
	b.Helper()

	const again = `UPDATE last_points p SET metrics_at = now(), memory_at = now() FROM attempts a WHERE a.id = p.attempt_id AND a.state = 'running'`

	for _, statement := range []string{
		`UPDATE sweeps SET spec = '{"name": "s", "objective": {"metric": "acc", "goal": "maximize"}}'`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at, finished_at)
		SELECT gen_random_uuid(), '%[1]s', n, '{"lr": 0.001, "optimizer": "adam"}', '%[3]s',
			CASE WHEN n <= %[4]d THEN 'succeeded' WHEN n <= %[4]d + %[5]d THEN 'running' ELSE 'waiting' END,
			CASE WHEN n <= %[4]d + %[5]d THEN now() END, CASE WHEN n <= %[4]d THEN now() END
		FROM generate_series(1, %[4]d + 2 * %[5]d) n ORDER BY random()`,
		`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, state, decided_at, reasons)
		SELECT gen_random_uuid(), sweep_id, id, 'w', 1, 'main', 'run', shape_key, 1, 1,
			CASE WHEN state = 'waiting' THEN 'waiting' ELSE 'placed' END, CASE WHEN state <> 'waiting' THEN now() END,
			jsonb_build_array(jsonb_build_object('host_name', 'host-1', 'dimension', 'memory', 'needed', number, 'free', 5, 'reason', 'host-1: needs 1,310 MiB, 1,120 free'))
		FROM trials`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, started_at, finished_at)
		SELECT r.attempt_id, r.trial_id, 1, 'main', 'run', CASE WHEN t.state = 'running' THEN 'running' ELSE 'finished' END, '%[2]s', nextval('lease_tokens'), 1, 1,
			CASE WHEN t.state = 'running' THEN '' ELSE 'ok' END, now(), t.finished_at
		FROM placement_requests r JOIN trials t ON t.id = r.trial_id WHERE r.state = 'placed'`,
		`INSERT INTO leases (attempt_id, sweep_id, host_id, memory_bytes, cpu_milli, state, expires_at, released_at, proof)
		SELECT a.id, '%[1]s', host_id, 1, 1, CASE WHEN state = 'running' THEN 'held' ELSE 'released' END, now() + interval '1 hour', finished_at,
			CASE WHEN state = 'running' THEN '' ELSE 'container exited' END FROM attempts a`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT a.id, m, step, step / 10.0, 'finite', now() FROM attempts a, unnest(ARRAY['acc', 'loss']) m, generate_series(1, CASE WHEN state = 'running' THEN 50 ELSE 5 END) step`,
		`INSERT INTO memory_points (attempt_id, at_second, host_bytes, device_bytes)
		SELECT a.id, second, 1, 1 FROM attempts a, generate_series(1, CASE WHEN state = 'running' THEN 100 ELSE 5 END) second`,
		`INSERT INTO last_points (attempt_id, metrics_at, memory_at) SELECT id, now(), now() FROM attempts`,
		`ANALYZE`, again, again, again, again,
	} {
		_, err := f.pool.Exec(b.Context(), fmt.Sprintf(statement+" -- %[1]s %[2]s %[3]s %[4]d %[5]d", f.sweep, f.hosts[0], f.shape, benchPast, benchLive))
		require.NoError(b, err)
	}
}
