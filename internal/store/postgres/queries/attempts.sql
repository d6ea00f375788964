-- name: GetAttempt :one
-- A deleted sweep is not shown from that moment on, and so are its attempts.
SELECT * FROM attempts e WHERE e.id = @id AND NOT EXISTS (
    SELECT 1 FROM trials t JOIN sweeps s ON s.id = t.sweep_id WHERE t.id = e.trial_id AND s.deleted_at IS NOT NULL);

-- name: ListAttempts :many
SELECT * FROM attempts WHERE trial_id = @trial_id ORDER BY number;

-- name: ListSweepAttempts :many
SELECT sqlc.embed(a), t.number AS trial_number
FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id
WHERE t.sweep_id = @sweep_id AND s.deleted_at IS NULL AND (t.number, a.number) > (@after_trial::integer, @after_number::integer)
ORDER BY t.number, a.number
LIMIT @max_rows;

-- name: MarkAttemptRunning :execrows
-- A starting container proves that its host can start one: it ends the host's streak of failures, and shows
-- that the host has the sweep's image. PostgreSQL runs these parts in any order, so present reads healthy,
-- which locks the host. It is announced once: a worker that took over reports it again.
WITH running AS (
    UPDATE attempts u SET state = 'running', container_id = @container_id, started_at = coalesce(u.started_at, @started_at), message = ''
    WHERE u.id = @id AND u.token = @token AND u.state IN ('placed', 'running')
    RETURNING u.id, u.host_id
), healthy AS (
    UPDATE hosts h
    SET failed_trials = '{}', failed_sweeps = '{}', failed_at = NULL, cordoned_at = NULL, cordon_reason = '', test_at = NULL, tests = 0
    FROM running r
    WHERE h.id = r.host_id AND h.failed_at IS NOT NULL AND EXISTS (SELECT 1 FROM attempts a WHERE a.id = @id AND a.state = 'placed')
    RETURNING h.id
), present AS (
    DELETE FROM missing_images m USING running r, attempts a, trials t
    WHERE a.id = r.id AND a.state = 'placed' AND t.id = a.trial_id AND m.host_id = r.host_id AND m.sweep_id = t.sweep_id
        AND (SELECT count(*) FROM healthy) >= 0
), announced AS (
    INSERT INTO events (kind, sweep_id, subject, data)
    SELECT 'attempt.running', t.sweep_id, a.id::text, '"running"'::jsonb
    FROM running r JOIN attempts a ON a.id = r.id JOIN trials t ON t.id = a.trial_id WHERE a.state = 'placed'
    RETURNING pg_notify('berth_events', '')
)
SELECT running.id FROM running;

-- name: NoteWait :one
-- Notes with the attempt and its trial why its container does not start yet. Trials are locked before
-- attempts.
WITH locked AS (
    SELECT t.id FROM trials t JOIN attempts a ON a.trial_id = t.id
    WHERE a.id = @id AND t.finished_at IS NULL FOR NO KEY UPDATE OF t
), noted AS (
    UPDATE attempts a SET message = @message FROM locked l
    WHERE a.id = @id AND a.trial_id = l.id AND a.token = @token AND a.state = 'placed'
    RETURNING a.trial_id
), told AS (
    UPDATE trials t SET message = @message FROM noted n WHERE t.id = n.trial_id
)
SELECT EXISTS (SELECT FROM attempts a WHERE a.id = @id AND a.token = @token AND a.state IN ('placed', 'running'))::boolean AS ours;

-- name: FinishAttempt :one
-- Returns whether this is the database's first news of the container, and the attempt's device class.
UPDATE attempts u
SET state = 'finished', failure_kind = @failure_kind, message = @message, exit_code = @exit_code, value = @value, results = @results,
    memory_peak_bytes = @memory_peak_bytes, device_peak_bytes = @device_peak_bytes, cpu_ns = @cpu_ns,
    wall_ns = @wall_ns, samples = @samples, framework_peak_bytes = @framework_peak_bytes,
    steps = @steps, step_ns = @step_ns, start_peak_bytes = @start_peak_bytes, training_peak_bytes = @training_peak_bytes, validation_peak_bytes = @validation_peak_bytes, first_fit = @first_fit,
    device_sm_milli = @device_sm_milli, device_dram_milli = @device_dram_milli, device_tensor_milli = @device_tensor_milli, oom_kills = @oom_kills, unseen_ns = @unseen_ns,
    device_active_ns = @device_active_ns, device_unknown_ns = @device_unknown_ns, device_fault = @device_fault, datasets = @datasets,
    metric_source = @metric_source, cpu_periods = @cpu_periods, cpu_throttled = @cpu_throttled, checkpoint_left = @checkpoint_left,
    container_id = coalesce(nullif(u.container_id, ''), @container_id::text),
    started_at = coalesce(u.started_at, @started_at), finished_at = @finished_at
FROM (SELECT a.id, a.container_id FROM attempts a WHERE a.id = @id FOR UPDATE) was
WHERE u.id = was.id AND u.token = @token AND u.state IN ('placed', 'running')
RETURNING (was.container_id = '' AND u.container_id <> '')::boolean AS began, u.device_class;

-- name: NoteStart :exec
-- As MarkAttemptRunning, for a start that the result reports first, and that may be long ago: failures since
-- the attempt was placed still count. Run it with the host's row locked.
WITH began AS (
    SELECT a.host_id, a.placed_at, t.sweep_id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.id = @id
), healthy AS (
    UPDATE hosts h
    SET failed_trials = '{}', failed_sweeps = '{}', failed_at = NULL, cordoned_at = NULL, cordon_reason = '', test_at = NULL, tests = 0
    FROM began b WHERE h.id = b.host_id AND h.failed_at < b.placed_at
)
DELETE FROM missing_images m USING began b WHERE m.host_id = b.host_id AND m.sweep_id = b.sweep_id AND m.failed_at < b.placed_at;

-- name: AbandonAttempt :execrows
-- The new token fences the old host: its later writes about the attempt find no row.
UPDATE attempts
SET state = 'abandoned', token = nextval('lease_tokens'), failure_kind = @failure_kind, message = @message, refused = @refused, finished_at = now()
WHERE id = @id AND state IN ('placed', 'running');

-- name: FenceEarlierAttempts :exec
-- A workflow that asks for attempt n is past the earlier ones: one that is open all the same comes from a
-- restored ledger, or had no outcome.
UPDATE attempts
SET state = 'abandoned', token = nextval('lease_tokens'), failure_kind = 'infra', message = @message, refused = true, finished_at = now()
WHERE trial_id = @trial_id AND number < @number AND state IN ('placed', 'running');

-- name: AbandonHostAttempts :exec
-- AbandonAttempt for all open attempts of a host, for good. Attempts abandoned before do not go back either;
-- refused attempts have ended and stay as they are.
WITH locked AS (
    SELECT a.id FROM attempts a
    WHERE a.id IN (SELECT l.attempt_id FROM leases l WHERE l.host_id = @host_id AND l.state <> 'released')
        AND (a.state IN ('placed', 'running') OR a.state = 'abandoned' AND NOT a.refused)
    ORDER BY a.id FOR NO KEY UPDATE OF a
)
UPDATE attempts a
SET state = 'abandoned', token = nextval('lease_tokens'), failure_kind = @failure_kind, message = @message, refused = true, finished_at = coalesce(a.finished_at, now())
FROM locked l WHERE a.id = l.id;

-- name: GetAssignee :one
SELECT sqlc.embed(a), l.id AS lease_id, t.sweep_id, t.number AS trial_number, t.params, t.shape_key, t.state AS trial_state, t.stage_keys,
    s.spec, s.image_digest, coalesce(d.memory_bytes, 0)::bigint AS card_bytes,
    (a.device_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM device_footprints f WHERE f.shape_key = a.shape_key AND f.device_class = a.device_class AND f.samples > 0))::boolean AS measures,
    ARRAY(SELECT e.id FROM attempts e JOIN leases o ON o.attempt_id = e.id
        WHERE e.trial_id = a.trial_id AND e.number < a.number AND o.host_id = a.host_id
        ORDER BY e.number)::uuid[] AS earlier
FROM attempts a
JOIN leases l ON l.attempt_id = a.id
JOIN trials t ON t.id = a.trial_id
JOIN sweeps s ON s.id = t.sweep_id
LEFT JOIN devices d ON d.id = a.device_id
WHERE a.id = @id;

-- name: GetRunning :one
-- The shape and the class of an attempt that runs with this token.
SELECT a.shape_key, a.device_class FROM attempts a
WHERE a.id = @id AND a.token = @token AND a.state = 'running' AND a.device_id IS NOT NULL;

-- name: LockFamily :many
-- Locks the family of a shape: its footprints change one after the other.
SELECT s.family, pg_advisory_xact_lock(hashtextextended('family:' || s.family, 0)) FROM shapes s WHERE s.key = @shape_key;

-- name: ReviveAttempts :many
-- Gives abandoned attempts back to their host instead of placing new ones: the attempt of one trial, or all
-- attempts of one host. Their leases were renewed just now, no newer attempt was placed, and the trial waits
-- for one. The attempt gets back the token of its lease, which its container carries, so the fenced token is
-- valid again.
WITH candidates AS (
    SELECT a.id, a.trial_id, a.number, l.token
    FROM leases l JOIN attempts a ON a.id = l.attempt_id
    WHERE l.host_id = @host_id AND l.state = 'held' AND l.expires_at > now() + @fresh::interval AND a.state = 'abandoned' AND NOT a.refused
    UNION ALL
    SELECT a.id, a.trial_id, a.number, l.token
    FROM attempts a JOIN leases l ON l.attempt_id = a.id JOIN hosts h ON h.id = l.host_id
    WHERE a.trial_id = @trial_id AND h.problem = '' AND l.state = 'held' AND l.expires_at > now() + @fresh::interval
      AND a.state = 'abandoned' AND NOT a.refused
), locked_trials AS (
    SELECT id FROM trials WHERE id IN (SELECT trial_id FROM candidates) AND finished_at IS NULL ORDER BY id FOR NO KEY UPDATE
), locked_requests AS (
    SELECT r.attempt_id, c.id AS revives, c.token
    FROM locked_trials t JOIN candidates c ON c.trial_id = t.id JOIN placement_requests r ON r.trial_id = t.id
    WHERE r.state = 'waiting' AND r.number > c.number
      AND NOT EXISTS (SELECT 1 FROM attempts n WHERE n.trial_id = t.id AND n.number > c.number)
    ORDER BY r.attempt_id FOR NO KEY UPDATE OF r
), locked_attempts AS (
    SELECT a.id, q.attempt_id, q.token
    FROM locked_requests q JOIN attempts a ON a.id = q.revives
    WHERE a.state = 'abandoned' ORDER BY a.id FOR NO KEY UPDATE OF a
), locked_leases AS ( -- without leases released in between, on proof that no container exists
    SELECT q.id, q.attempt_id, q.token
    FROM locked_attempts q JOIN leases l ON l.attempt_id = q.id
    WHERE l.state = 'held' ORDER BY l.id FOR NO KEY UPDATE OF l
), revived AS (
    UPDATE attempts a
    SET state = CASE WHEN a.started_at IS NULL THEN 'placed' ELSE 'running' END, token = q.token,
        failure_kind = '', message = '', finished_at = NULL
    FROM locked_leases q WHERE a.id = q.id
), decided AS (
    UPDATE placement_requests r SET state = 'placed', decided_at = now(), reasons = '[]', revives = q.id
    FROM locked_leases q WHERE r.attempt_id = q.attempt_id
    RETURNING r.attempt_id, r.sweep_id, r.trial_id, r.workflow_id, r.revives
), running_trials AS (
    UPDATE trials t SET state = 'running', started_at = coalesce(t.started_at, now())
    FROM decided d WHERE t.id = d.trial_id
), told AS (
    INSERT INTO outbox (kind, workflow_id, payload)
    SELECT 'placed', workflow_id, jsonb_build_object('attempt_id', attempt_id) FROM decided
), announced AS (
    INSERT INTO events (kind, sweep_id, subject, data)
    SELECT 'trial.state', sweep_id, trial_id::text, '"running"'::jsonb FROM decided
)
SELECT revives::uuid AS attempt_id FROM decided;

-- name: ListReportAttempts :many
-- The input of a sweep's report: the sweep's attempts, and attempts of other sweeps that began on the same
-- GPU, or on the same host's cores, while the sweep had one there. It uses an index and an array, because the
-- planner expects few rows of an array. Attempts of a deleted sweep count as others' until they are deleted.
WITH own AS MATERIALIZED (
    SELECT a.id, a.host_id, coalesce(a.device_id, '') AS device_id, a.started_at, coalesce(a.finished_at, now()) AS ended_at
    FROM trials t JOIN attempts a ON a.trial_id = t.id WHERE t.sweep_id = @sweep_id
), spans AS (
    SELECT host_id, device_id, min(started_at) AS from_time, max(ended_at) AS to_time FROM own WHERE started_at IS NOT NULL GROUP BY host_id, device_id
), wanted AS (
    SELECT id FROM own
    UNION
    SELECT a.id FROM spans s CROSS JOIN LATERAL (
        SELECT o.id FROM attempts o
        WHERE o.host_id = s.host_id AND coalesce(o.device_id, '') = s.device_id AND o.started_at < s.to_time AND o.finished_at > s.from_time
        UNION ALL
        SELECT o.id FROM attempts o
        WHERE o.host_id = s.host_id AND coalesce(o.device_id, '') = s.device_id AND o.started_at < s.to_time AND o.finished_at IS NULL
        OFFSET 0
    ) a
)
SELECT a.id, t.sweep_id, t.number AS trial_number, a.number, a.stage, a.shape_key, a.purpose, coalesce(r.short, false)::boolean AS short, a.failure_kind,
    a.host_id, h.name AS host_name, a.device_id, a.device_class, h.memory_bytes AS host_bytes, coalesce(d.memory_bytes, 0)::bigint AS card_bytes,
    a.memory_bytes, coalesce((SELECT l.device_bytes FROM leases l WHERE l.attempt_id = a.id), a.device_bytes)::bigint AS device_bytes, a.memory_peak_bytes, a.device_peak_bytes, a.cpu_milli, a.cpu_ns, a.wall_ns, a.unseen_ns, a.samples, a.cpu_periods, a.cpu_throttled,
    a.device_sm_milli, a.device_dram_milli, a.device_tensor_milli, a.device_active_ns, a.device_unknown_ns, a.started_at, a.finished_at
FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN hosts h ON h.id = a.host_id
    LEFT JOIN devices d ON d.id = a.device_id LEFT JOIN placement_requests r ON r.attempt_id = a.id
WHERE a.id = ANY (ARRAY(SELECT id FROM wanted))
LIMIT @max_rows;

-- name: Now :one
SELECT now()::timestamptz;
