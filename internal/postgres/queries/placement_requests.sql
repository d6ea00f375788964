-- name: InsertPlacementRequest :execrows
INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key,
    memory_bytes, cpu_milli, device_bytes, contexts, exclusive, expected_ns)
VALUES (@attempt_id, @sweep_id, @trial_id, @workflow_id, @number, @stage, @purpose, @shape_key,
    @memory_bytes, @cpu_milli, @device_bytes, @contexts, @exclusive, @expected_ns)
ON CONFLICT (attempt_id) DO NOTHING;

-- name: GetPlacementRequest :one
SELECT * FROM placement_requests WHERE attempt_id = @attempt_id;

-- name: ListWaitingRequests :many
SELECT r.*, t.number AS trial_number, s.max_parallel, s.state AS sweep_state, extract(epoch FROM now() - r.requested_at)::double precision AS waited_seconds
FROM placement_requests r JOIN sweeps s ON s.id = r.sweep_id JOIN trials t ON t.id = r.trial_id
WHERE r.state = 'waiting'
ORDER BY r.requested_at, r.attempt_id
LIMIT @max_rows;

-- name: CountRunningBySweep :many
SELECT sweep_id, count(*)::integer AS attempts FROM leases WHERE state <> 'released' GROUP BY sweep_id;

-- name: PlaceRequests :many
-- Turns waiting requests into attempts with leases, books their hosts and devices, and puts the news for their
-- workflows into the outbox, in one statement. The CHECKs of hosts and devices refuse the whole when it is too much.
WITH decided AS (
    SELECT unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@host_ids::uuid[]) AS host_id, unnest(@device_ids::text[]) AS device_id
), placed AS (
    UPDATE placement_requests r SET state = 'placed', decided_at = now(), reasons = '[]'
    FROM decided d
    WHERE r.attempt_id = d.attempt_id AND r.state = 'waiting'
    RETURNING r.*, d.host_id, nullif(d.device_id, '') AS device_id, nextval('lease_tokens') AS token
), new_attempts AS (
    INSERT INTO attempts (id, trial_id, number, stage, purpose, host_id, device_id, token,
        memory_bytes, cpu_milli, device_bytes, contexts, exclusive)
    SELECT attempt_id, trial_id, number, stage, purpose, host_id, device_id, token,
        memory_bytes, cpu_milli, device_bytes, contexts, exclusive FROM placed
), new_leases AS (
    INSERT INTO leases (attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, exclusive,
        token, expires_at)
    SELECT attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, exclusive,
        token, now() + @term::interval FROM placed
), booked_hosts AS (
    UPDATE hosts h
    SET cpu_milli_reserved = h.cpu_milli_reserved + p.cpu_milli,
        memory_reserved_bytes = h.memory_reserved_bytes + p.memory_bytes,
        attempts = h.attempts + p.attempts
    FROM (SELECT host_id, sum(cpu_milli)::bigint AS cpu_milli, sum(memory_bytes)::bigint AS memory_bytes, count(*)::integer AS attempts
        FROM placed GROUP BY host_id) p
    WHERE h.id = p.host_id
), booked_devices AS (
    UPDATE devices d
    SET reserved_bytes = d.reserved_bytes + p.device_bytes, contexts_reserved = d.contexts_reserved + p.contexts
    FROM (SELECT device_id, sum(device_bytes)::bigint AS device_bytes, sum(contexts)::integer AS contexts
        FROM placed WHERE device_id IS NOT NULL GROUP BY device_id) p
    WHERE d.id = p.device_id
), running_trials AS (
    UPDATE trials t SET state = 'running', started_at = coalesce(t.started_at, now())
    FROM placed p WHERE t.id = p.trial_id AND t.finished_at IS NULL
), told AS (
    INSERT INTO outbox (kind, workflow_id, payload)
    SELECT 'placed', workflow_id, jsonb_build_object('attempt_id', attempt_id) FROM placed
), announced AS (
    INSERT INTO events (kind, sweep_id, subject, data)
    SELECT 'trial.state', sweep_id, trial_id::text, '"running"'::jsonb FROM placed
)
SELECT attempt_id, token FROM placed;

-- name: MarkImpossible :execrows
UPDATE placement_requests SET state = 'impossible', decided_at = now(), reasons = @reasons
WHERE attempt_id = @attempt_id AND state = 'waiting';

-- name: StoreReasons :exec
UPDATE placement_requests r SET reasons = u.reasons
FROM (SELECT unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@all_reasons::jsonb[]) AS reasons) u
WHERE r.attempt_id = u.attempt_id AND r.state = 'waiting';

-- name: WithdrawRequest :execrows
UPDATE placement_requests SET state = 'withdrawn', decided_at = now(), reasons = '[]'
WHERE attempt_id = @attempt_id AND state = 'waiting';

-- name: RaiseWaitingDemand :execrows
-- After an out-of-memory, siblings that still wait ask for the larger size at once, but for no more than there is:
-- what no host could hold would end them. Last attempts ask for a whole host already.
UPDATE placement_requests r SET memory_bytes = most.bytes
FROM (SELECT least(@memory_bytes::bigint, max(memory_bytes - memory_headroom_bytes))::bigint AS bytes FROM hosts) most
WHERE r.shape_key = @shape_key AND r.state = 'waiting' AND NOT r.exclusive AND r.memory_bytes < most.bytes;
