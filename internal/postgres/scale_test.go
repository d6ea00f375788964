package postgres_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// BenchmarkScale times what rounds and pages ask of a database as it is after a year:
// SCALE_TRIALS trials (200,000) with an attempt each in 2,000 sweeps, 100 hosts with 8
// GPUs, 24 leases a GPU, and 700 sweeps with 16 waiting requests and max_parallel 1.
func BenchmarkScale(b *testing.B) {
	trials, err := strconv.Atoi(cmp.Or(os.Getenv("SCALE_TRIALS"), "200000"))
	require.NoError(b, err)

	url := durable(b)
	pool, store := openPool(b, url), open(b, url)

	for _, statement := range []string{
		`INSERT INTO shapes (key, shape) SELECT 's' || n, '{}' FROM generate_series(0, 19) n`,
		`INSERT INTO hosts (id, name, boot_id, cpu_milli, memory_bytes, memory_free_bytes, memory_reserved_bytes, cpu_milli_reserved, attempts, max_attempts, memory_headroom_bytes, version)
		SELECT md5('h' || n)::uuid, 'h' || n, 'b', 256000, 2::bigint << 40, 2::bigint << 40, 192, 192, 192, 1000, 0, 'v' FROM generate_series(0, 99) n`,
		`INSERT INTO devices (id, host_id, model, profile, mode, memory_bytes, headroom_bytes, free_bytes, max_contexts, contexts_reserved, reserved_bytes)
		SELECT 'g' || n, md5('h' || n / 8)::uuid, 'H200', '', 'time_slicing', 140::bigint << 30, 0, 140::bigint << 30, 48, 24, 24 FROM generate_series(0, 799) n`,
		`INSERT INTO sweeps (id, name, spec, image_digest, created_by, state, created_at, started_at, finished_at, max_parallel)
		SELECT md5('w' || n)::uuid, 'w', '{"command": ["run"], "resources": {"memory": 1073741824}}', 'x', 'local', CASE WHEN n < 1300 THEN 'succeeded' ELSE 'running' END,
			now() - (2000 - n) * interval '4 hours', now(), CASE WHEN n < 1300 THEN now() - (2000 - n) * interval '4 hours' END, CASE WHEN n < 1300 THEN 0 ELSE 1 END FROM generate_series(0, 1999) n`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, value, created_at, started_at, finished_at)
		SELECT md5('t' || n)::uuid, md5('w' || n %% 1300)::uuid, n / 1300 + 1, '{"lr": 0.5}', 's' || n %% 20, 'succeeded', 'ok', n, at, at, at + interval '10 minutes'
		FROM (SELECT n, now() - (2000 - n %% 1300) * interval '4 hours' AS at FROM generate_series(0, %[1]d - 1) n) t`,
		`INSERT INTO attempts (id, trial_id, number, stage, purpose, state, host_id, device_id, token, memory_bytes, cpu_milli, failure_kind, placed_at, started_at, finished_at)
		SELECT md5('a' || n)::uuid, md5('t' || n)::uuid, 1, 'main', 'run', 'finished', md5('h' || n %% 800 / 8)::uuid, 'g' || n %% 800, nextval('lease_tokens'), 1, 1, 'ok', at, at, at + interval '10 minutes'
		FROM (SELECT n, now() - (2000 - n %% 1300) * interval '4 hours' AS at FROM generate_series(0, %[1]d - 1) n) t`,
		`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, state, decided_at)
		SELECT a.id, t.sweep_id, t.id, 'w', 1, 'main', 'run', t.shape_key, 1, 1, 'placed', now() FROM attempts a JOIN trials t ON t.id = a.trial_id`,
		`INSERT INTO leases (attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, expires_at)
		SELECT a.id, t.sweep_id, a.host_id, a.device_id, 1, 1, 1, 1, now() + interval '1 hour' FROM attempts a JOIN trials t ON t.id = a.trial_id LIMIT 19200`,
		`INSERT INTO trials (id, sweep_id, number, params, shape_key, state)
		SELECT md5('q' || n)::uuid, md5('w' || 1300 + n %% 700)::uuid, n / 700 + 1, '{"lr": 0.5}', 's1', 'waiting' FROM generate_series(0, 700 * 16 - 1) n`,
		`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli)
		SELECT md5('p' || id)::uuid, sweep_id, id, 'w', 1, 'main', 'run', shape_key, 1, 1 FROM trials WHERE state = 'waiting'`,
		`VACUUM ANALYZE`,
	} {
		_, err := pool.Exec(b.Context(), fmt.Sprintf(statement+" -- %[1]d", trials))
		require.NoError(b, err, statement)
	}

	var sweep, host string

	require.NoError(b, pool.QueryRow(b.Context(), "SELECT md5('w1299')::uuid, md5('h7')::uuid").Scan(&sweep, &host))

	for _, step := range []struct {
		name string
		ask  func() error
	}{
		{"round reads its queue", func() error { _, err := store.Queue(b.Context(), 10_000); return err }},
		{"round holds requests", func() error { return store.HoldRequests(b.Context()) }},
		{"hosts and devices", func() error { _, err := store.RecentHosts(b.Context()); return err }},
		{"page of sweeps", func() error {
			_, err := store.PageSweeps(b.Context(), berth.SweepQuery{Limit: 50, Sort: berth.Sort{By: berth.SortCreatedAt, Descending: true}})
			return err
		}},
		{"report", func() error { _, err := store.ReportInput(b.Context(), sweep); return err }},
		{"recent usage of a shape", func() error { _, err := store.RecentUsage(b.Context(), "s1"); return err }},
		{"oldest outputs of a host", func() error {
			_, err := store.OldestOutputs(b.Context(), host, nil, 1000)
			return err
		}},
		{"sweep of 10,000 listed trials", func() error {
			_, _, err := store.CreateSweep(b.Context(), berth.NewSweep{ID: uuid.NewString(), Spec: longList(b, ""), ImageDigest: "x", CreatedBy: "local"})
			return err
		}},
	} {
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, step.ask())
			}
		})
	}
}
