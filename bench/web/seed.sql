-- A system after months of use: 1,000 ended sweeps; the newest has 50,000 trials with
-- their attempts and metrics. Run by bench/web/run on an empty `berth dev`. The
-- variable host is the id of its machine.
BEGIN;

INSERT INTO shapes (key, shape)
VALUES ('seeded', '{"image_digest": "sha256:0", "command": ["python3"], "values": {}, "stage": "main", "cpu_milli": 1000}');

CREATE TEMPORARY TABLE file AS
SELECT '{"version": 1, "name": "seeded", "image": "seeded:1", "command": ["python3", "train.py"],
  "parameters": [{"name": "lr", "type": "float", "min": 0.0001, "max": 0.1, "scale": "log"},
    {"name": "batch", "type": "categorical", "values": [32, 64, 128]}, {"name": "width", "type": "int", "min": 8, "max": 512}],
  "search": {"algorithm": "random"}, "objective": {"metric": "val_accuracy", "goal": "maximize"}, "limits": {"max_trials": 50000}}'::json AS spec;

INSERT INTO sweeps (id, name, spec, image_digest, state, planned, created_by, created_at, started_at, finished_at)
SELECT gen_random_uuid(), 'sweep-' || n, spec, 'sha256:0', (ARRAY['succeeded', 'failed', 'stopped', 'canceled'])[1 + n % 4],
  CASE WHEN n = 1000 THEN 50000 ELSE 10 END, (ARRAY['ada', 'grace', 'edsger'])[1 + n % 3],
  now() - (1001 - n) * interval '1 hour', now() - (1001 - n) * interval '1 hour', now() - (1000 - n) * interval '1 hour'
FROM generate_series(1, 1000) n, file;

INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, message, value, created_at, started_at, finished_at)
SELECT gen_random_uuid(), s.id, n,
  json_build_object('lr', round((10 ^ (-4 + 3 * random()))::numeric, 6), 'batch', (ARRAY[32, 64, 128])[1 + n % 3], 'width', 8 + n % 504),
  'seeded', CASE WHEN n % 20 = 0 THEN 'failed' ELSE 'succeeded' END, CASE WHEN n % 20 = 0 THEN 'crash' ELSE 'ok' END,
  CASE WHEN n % 20 = 0 THEN 'the container exited with code 1' ELSE '' END, CASE WHEN n % 20 = 0 THEN NULL ELSE 0.5 + 0.5 * random() END,
  now() - interval '2 hours', now() - interval '2 hours' + n * interval '100 ms', now() - interval '2 hours' + n * interval '100 ms' + interval '20 s'
FROM sweeps s, generate_series(1, s.planned) n;

INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, state, decided_at)
SELECT gen_random_uuid(), sweep_id, id, 'w', 1, 'main', 'run', shape_key, 512 << 20, 1000, 'placed', now() FROM trials;

-- Their files are stored: of waiting ones the worker would look for a hundred at a time, without
-- end.
INSERT INTO attempts (id, trial_id, number, stage, purpose, state, files_state, host_id, token, memory_bytes, cpu_milli, failure_kind, started_at, finished_at)
SELECT r.attempt_id, r.trial_id, r.number, r.stage, r.purpose, 'finished', 'stored', :'host', nextval('lease_tokens'), r.memory_bytes, r.cpu_milli,
  t.failure_kind, t.started_at, t.finished_at
FROM placement_requests r JOIN trials t ON t.id = r.trial_id;

INSERT INTO leases (attempt_id, sweep_id, host_id, memory_bytes, cpu_milli, state, expires_at, released_at, proof)
SELECT attempt_id, sweep_id, :'host', memory_bytes, cpu_milli, 'released', now(), now(), 'container exited' FROM placement_requests;

INSERT INTO metrics (attempt_id, name, step, value, status, at)
SELECT a.id, 'val_accuracy', step, 1 - 1.0 / (2 + step), 'finite', now()
FROM attempts a, generate_series(1, 10) step;

COMMIT;
ANALYZE;
