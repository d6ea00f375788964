package postgres_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// yearOfBerth fills a database as it is after a year, with %[1]d trials that ended. Of 2,000
// sweeps 1,300 have ended; the other 700 have max_parallel 1, 27 or 28 leases and 16 waiting
// requests each, and 20 of them list 10,000 trials. Sweep u1 has 1,000 trials that ended,
// sweep u2 has 100,000, judged at three rungs each. There are 100 hosts with 8 GPUs, and 24 leases on each GPU.
var yearOfBerth = []string{
	`INSERT INTO shapes (key, shape) SELECT 's' || n, '{}' FROM generate_series(0, 19) n`,
	`INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes) SELECT 's' || n, 'full', 1, 1 FROM generate_series(0, 19) n`,
	`INSERT INTO hosts (id, name, boot_id, cpu_milli, memory_bytes, memory_free_bytes, memory_reserved_bytes, cpu_milli_reserved, attempts, max_attempts, memory_headroom_bytes, version)
	SELECT md5('h' || n)::uuid, 'h' || n, 'b', 256000, 2::bigint << 40, 2::bigint << 40, 192, 192, 192, 1000, 0, 'v' FROM generate_series(0, 99) n`,
	`INSERT INTO devices (id, host_id, model, profile, mode, memory_bytes, headroom_bytes, free_bytes, max_contexts, contexts_reserved, reserved_bytes)
	SELECT 'g' || n, md5('h' || n / 8)::uuid, 'H200', '', 'time_slicing', 140::bigint << 30, 0, 140::bigint << 30, 48, 24, 24 FROM generate_series(0, 799) n`,
	`INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, created_at, started_at, finished_at, max_parallel, planned)
	SELECT md5('w' || n)::uuid, 'w' || n, '{"command": ["run"], "resources": {"memory": 1073741824}, "objective": {"metric": "loss", "goal": "minimize"}}', 'x' || n %% 50, 'local',
		CASE WHEN n < 1300 THEN 'succeeded' ELSE 'running' END, now() - (2000 - n) * interval '4 hours', now(),
		CASE WHEN n < 1300 THEN now() - (2000 - n) * interval '4 hours' END, CASE WHEN n < 1300 THEN 0 ELSE 1 END, CASE WHEN n < 1300 THEN 0 ELSE 10000 END
	FROM generate_series(0, 1999) n`,
	`INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, created_at, started_at, finished_at, max_parallel)
	SELECT md5('u' || n)::uuid, 'u' || n, '{"command": ["run"], "objective": {"metric": "loss", "goal": "minimize"}}', 'x', 'local',
		CASE n WHEN 1 THEN 'succeeded' ELSE 'running' END, now() - n * interval '1 hour', now(), CASE n WHEN 1 THEN now() END, 0 FROM generate_series(1, 2) n`,
	`INSERT INTO sweep_files (sweep_id, spec) SELECT id, spec FROM sweeps`,
	`INSERT INTO sweep_entries (sweep_id, number, params)
	SELECT md5('w' || 1300 + w)::uuid, n, json_build_object('lr', n) FROM generate_series(0, 19) w, generate_series(1, 10000) n`,

	// Ended trials: trial t of sweep w, each with an attempt.
	`CREATE TABLE ended AS
	SELECT md5('t' || n)::uuid AS trial, md5('a' || n)::uuid AS attempt, md5('w' || n %% 1300)::uuid AS sweep, n / 1300 + 1 AS number, n, now() - (2000 - n %% 1300) * interval '4 hours' AS at
	FROM generate_series(0, %[1]d - 1) n
	UNION ALL SELECT md5('u1t' || n)::uuid, md5('u1a' || n)::uuid, md5('u1')::uuid, n, n, now() - interval '1 hour' FROM generate_series(1, 1000) n
	UNION ALL SELECT md5('u2t' || n)::uuid, md5('u2a' || n)::uuid, md5('u2')::uuid, n, n, now() - interval '2 hours' FROM generate_series(1, 100000) n`,
	`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, value, created_at, started_at, finished_at)
	SELECT trial, sweep, number, ('{"lr":' || n || '}')::json, 's' || n %% 20, 'succeeded', 'ok', n %% 7919, at, at, at + interval '10 minutes' FROM ended`,
	`INSERT INTO attempts (id, trial_id, number, stage, purpose, shape_key, state, host_id, device_id, token, memory_bytes, cpu_milli, failure_kind, placed_at, started_at, finished_at, files_state)
	SELECT attempt, trial, 1, 'main', 'run', 's' || n %% 20, 'finished', md5('h' || n %% 800 / 8)::uuid, 'g' || n %% 800, nextval('lease_tokens'), 1, 1, 'ok', at, at, at + interval '10 minutes', 'stored' FROM ended`,
	`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, state, requested_at, decided_at)
	SELECT attempt, sweep, trial, 'w', 1, 'main', 'run', 's' || n %% 20, 1, 1, 'placed', at, at FROM ended`,
	`INSERT INTO leases (attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, state, created_at, expires_at, released_at, proof, shape_key)
	SELECT attempt, sweep, md5('h' || n %% 800 / 8)::uuid, 'g' || n %% 800, 1, 1, 1, 1, 'released', at, at + interval '1 hour', at + interval '10 minutes', 'exited', 's' || n %% 20 FROM ended`,
	`INSERT INTO metrics (attempt_id, name, step, value, status, at)
	SELECT attempt, 'loss', step, 1.0 / step, 'finite', at FROM (SELECT attempt, at FROM ended ORDER BY sweep <> md5('u1')::uuid, number LIMIT 10000) e, generate_series(1, 500) step`,

	`INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why)
	SELECT trial, rung, sweep, rung + 1, n %% 7919, n %% 3 = 0, 'worse' FROM ended, generate_series(0, 2) rung WHERE sweep = md5('u2')::uuid`,

	// Running trials.
	`CREATE TABLE runs AS SELECT md5('rt' || n)::uuid AS trial, md5('ra' || n)::uuid AS attempt, md5('w' || 1300 + n %% 700)::uuid AS sweep, n / 700 + 1 AS number, n FROM generate_series(0, 19199) n`,
	`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at) SELECT trial, sweep, number, '{"lr": 0.5}', 's' || n %% 20, 'running', now() FROM runs`,
	`INSERT INTO attempts (id, trial_id, number, stage, purpose, shape_key, state, host_id, device_id, token, memory_bytes, cpu_milli, placed_at, started_at, container_id)
	SELECT attempt, trial, 1, 'main', 'run', 's' || n %% 20, 'running', md5('h' || n %% 800 / 8)::uuid, 'g' || n %% 800, nextval('lease_tokens'), 1, 1, now(), now(), 'c' || n FROM runs`,
	`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, state, decided_at)
	SELECT attempt, sweep, trial, 'w', 1, 'main', 'run', 's' || n %% 20, 1, 1, 'placed', now() FROM runs`,
	`INSERT INTO leases (attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, shape_key, expires_at)
	SELECT attempt, sweep, md5('h' || n %% 800 / 8)::uuid, 'g' || n %% 800, 1, 1, 1, 1, 's' || n %% 20, now() + interval '1 day' FROM runs`,

	// Waiting trials. Every fiftieth has run before, on a host that failed.
	`INSERT INTO trials (id, sweep_id, number, params, shape_key, state)
	SELECT md5('q' || n)::uuid, md5('w' || 1300 + n %% 700)::uuid, n / 700 + 101, '{"lr": 0.5}', 's1', 'waiting' FROM generate_series(0, 700 * 16 - 1) n`,
	`INSERT INTO attempts (id, trial_id, number, stage, purpose, shape_key, state, host_id, device_id, token, memory_bytes, cpu_milli, failure_kind, placed_at, started_at, finished_at)
	SELECT md5('p1' || n)::uuid, md5('q' || n)::uuid, 1, 'main', 'run', 's1', 'finished', md5('h' || n %% 800 / 8)::uuid, 'g' || n %% 800, nextval('lease_tokens'), 1, 1, 'infra', now(), now(), now()
	FROM generate_series(0, 700 * 16 - 1, 50) n`,
	`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli)
	SELECT md5('p' || t.id)::uuid, t.sweep_id, t.id, 'w', coalesce(a.number + 1, 1), 'main', 'run', t.shape_key, 1, 1
	FROM trials t LEFT JOIN attempts a ON a.trial_id = t.id WHERE t.state = 'waiting'`,
	`DROP TABLE ended, runs`,
	`VACUUM ANALYZE`,
}

// yearDatabase returns a database filled by yearOfBerth: its own, or SCALE_URL's, which is
// kept for the next time.
func yearDatabase(b *testing.B) (url string, pool *pgxpool.Pool) {
	b.Helper()

	trials, err := strconv.Atoi(cmp.Or(os.Getenv("SCALE_TRIALS"), "200000"))
	require.NoError(b, err)

	if url = os.Getenv("SCALE_URL"); url == "" {
		url = durable(b)
	}

	pool = openPool(b, url)

	var filled bool

	require.NoError(b, pool.QueryRow(b.Context(), `SELECT EXISTS (SELECT 1 FROM sweeps)`).Scan(&filled))

	for _, statement := range yearOfBerth {
		if !filled {
			_, err := pool.Exec(b.Context(), fmt.Sprintf(statement+" -- %[1]d", trials))
			require.NoError(b, err, statement)
		}
	}

	_, err = pool.Exec(b.Context(), `UPDATE hosts SET last_seen_at = now() + interval '1 hour'`) // no worker touches them
	require.NoError(b, err)

	return url, pool
}

// year names rows of yearOfBerth.
type year struct {
	thousand, hundredThousand, open string // sweeps
	cloned                          string // a sweep like thousand, to delete
	host, trial, attempt            string // the last two of thousand
	runs, waits                     string // attempts
}

func readYear(b *testing.B, pool *pgxpool.Pool) (y year) {
	b.Helper()

	require.NoError(b, pool.QueryRow(b.Context(), `SELECT md5('u1')::uuid, md5('u2')::uuid, md5('w1990')::uuid, md5('u3')::uuid, md5('h7')::uuid,
		md5('u1t7')::uuid, md5('u1a7')::uuid, md5('ra7')::uuid, md5('p' || md5('q7')::uuid)::uuid`).
		Scan(&y.thousand, &y.hundredThousand, &y.open, &y.cloned, &y.host, &y.trial, &y.attempt, &y.runs, &y.waits))

	return y
}

// clone makes the sweep that benchmarks delete: 1,000 trials with 500 points each.
func (y year) clone(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()

	for _, statement := range []string{
		`INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, finished_at)
		SELECT md5('u3')::uuid, 'u3', '{"command": ["run"]}', 'x', 'local', 'succeeded', now()`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, started_at, finished_at)
		SELECT md5('u3t' || n)::uuid, md5('u3')::uuid, n, '{}', 's1', 'succeeded', 'ok', now(), now() FROM generate_series(1, 1000) n`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, token, memory_bytes, cpu_milli, failure_kind, finished_at, files_state)
		SELECT md5('u3a' || n)::uuid, md5('u3t' || n)::uuid, 1, 'main', 'run', 'finished', md5('h7')::uuid, nextval('lease_tokens'), 1, 1, 'ok', now(), 'stored' FROM generate_series(1, 1000) n`,
		`INSERT INTO metrics (attempt_id, name, step, value, status, at)
		SELECT md5('u3a' || n)::uuid, 'loss', step, 1, 'finite', now() FROM generate_series(1, 1000) n, generate_series(1, 500) step`,
	} {
		_, err := pool.Exec(b.Context(), statement)
		require.NoError(b, err, statement)
	}
}
