-- name: RenewLeases :execrows
-- A container with the token of an earlier lease renews nothing.
UPDATE leases l SET expires_at = now() + @term::interval, state = 'held'
FROM (SELECT unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@tokens::bigint[]) AS token) seen
WHERE l.host_id = @host_id AND l.attempt_id = seen.attempt_id AND l.token = seen.token AND l.state <> 'released';

-- name: SuspectLeases :many
-- Skips a locked lease: another transaction is renewing or releasing it.
WITH expired AS (
    SELECT id FROM leases WHERE state = 'held' AND expires_at < now() FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE leases l SET state = 'suspect' FROM expired e WHERE l.id = e.id RETURNING l.attempt_id;

-- name: CountSuspectLeases :one
SELECT count(*)::integer FROM leases WHERE state = 'suspect' OR (state = 'held' AND expires_at < now());

-- name: ReleaseLease :exec
-- Frees the lease's booking, once, in the statement that records the proof (rule R3): its device after its
-- host, whose update it reads for that reason (store.go). Totals of the host fall towards their targets. An
-- attempt revived since the proof was found keeps its lease: the lock on its row ensures that.
WITH ended AS (
    SELECT a.id FROM attempts a WHERE a.id = @attempt_id AND a.state IN ('finished', 'abandoned') FOR NO KEY UPDATE
), released AS (
    UPDATE leases l SET state = 'released', released_at = now(), proof = @proof
    FROM ended e WHERE l.attempt_id = e.id AND l.state <> 'released'
    RETURNING l.*
), host AS (
    UPDATE hosts h
    SET cpu_milli_reserved = h.cpu_milli_reserved - r.cpu_milli,
        memory_reserved_bytes = h.memory_reserved_bytes - r.memory_bytes,
        attempts = h.attempts - 1,
        cpu_milli = greatest(coalesce(h.cpu_milli_target, h.cpu_milli), h.cpu_milli_reserved - r.cpu_milli),
        memory_bytes = greatest(coalesce(h.memory_bytes_target, h.memory_bytes), h.memory_reserved_bytes - r.memory_bytes + h.memory_headroom_bytes),
        max_attempts = CASE WHEN h.max_attempts_target IS NULL THEN h.max_attempts ELSE greatest(h.max_attempts_target, h.attempts - 1) END
    FROM released r WHERE h.id = r.host_id
    RETURNING r.device_id, r.device_bytes, r.contexts
)
UPDATE devices d SET reserved_bytes = d.reserved_bytes - h.device_bytes, contexts_reserved = d.contexts_reserved - h.contexts
FROM host h WHERE d.id = h.device_id;

-- name: ResizeLease :one
-- Resizes the lease of an attempt that shares a GPU to the given memory, or to the free memory if that is
-- less. Returns the new size.
WITH lease AS (
    SELECT l.id, l.device_id, l.device_bytes FROM leases l
    WHERE l.attempt_id = @attempt_id AND l.state <> 'released' AND NOT l.exclusive_device FOR NO KEY UPDATE
), device AS (
    SELECT d.id, o.id AS lease_id, least(@device_bytes::bigint, o.device_bytes + d.memory_bytes - d.headroom_bytes - d.reserved_bytes)::bigint AS held,
        d.reserved_bytes - o.device_bytes AS others
    FROM lease o JOIN devices d ON d.id = o.device_id FOR NO KEY UPDATE OF d
), booked AS (
    UPDATE devices SET reserved_bytes = device.others + device.held FROM device WHERE devices.id = device.id
)
UPDATE leases SET device_bytes = device.held FROM device WHERE leases.id = device.lease_id
RETURNING leases.device_bytes;

-- name: ReleaseHostLeases :exec
-- ReleaseLease for all that a host holds.
WITH locked AS (
    SELECT o.id FROM leases o WHERE o.host_id = @host_id AND o.state <> 'released' ORDER BY o.id FOR NO KEY UPDATE
), released AS (
    UPDATE leases l SET state = 'released', released_at = now(), proof = @proof
    FROM locked WHERE l.id = locked.id
    RETURNING l.*
), host AS (
    UPDATE hosts h
    SET cpu_milli_reserved = h.cpu_milli_reserved - r.cpu_milli,
        memory_reserved_bytes = h.memory_reserved_bytes - r.memory_bytes,
        attempts = h.attempts - r.attempts
    FROM (SELECT host_id, sum(cpu_milli)::bigint AS cpu_milli, sum(memory_bytes)::bigint AS memory_bytes, count(*)::integer AS attempts
        FROM released GROUP BY host_id) r WHERE h.id = r.host_id
    RETURNING h.id
)
UPDATE devices d SET reserved_bytes = d.reserved_bytes - r.device_bytes, contexts_reserved = d.contexts_reserved - r.contexts
FROM host h JOIN (SELECT host_id, device_id, sum(device_bytes)::bigint AS device_bytes, sum(contexts)::integer AS contexts
    FROM released WHERE device_id IS NOT NULL GROUP BY host_id, device_id) r ON r.host_id = h.id
WHERE d.id = r.device_id;

-- name: ListHostLeases :many
-- revivable: the attempt was abandoned, not refused, and its trial, which has not ended, has no newer one.
SELECT l.attempt_id, l.sweep_id, a.trial_id, t.number AS trial_number, a.number, l.state, l.token, a.token AS current, a.state AS attempt_state,
    (now() - l.created_at)::interval AS age,
    (a.state = 'abandoned' AND NOT a.refused AND t.finished_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM attempts n WHERE n.trial_id = a.trial_id AND n.number > a.number))::boolean AS revivable
FROM leases l JOIN attempts a ON a.id = l.attempt_id JOIN trials t ON t.id = a.trial_id
WHERE l.host_id = @host_id AND l.state <> 'released'
ORDER BY l.created_at;

-- name: ListLeasesOf :many
-- ListHostLeases for these attempts, on any host.
SELECT l.attempt_id, l.sweep_id, a.trial_id, t.number AS trial_number, a.number, l.state, l.token, a.token AS current, a.state AS attempt_state,
    (now() - l.created_at)::interval AS age,
    (a.state = 'abandoned' AND NOT a.refused AND t.finished_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM attempts n WHERE n.trial_id = a.trial_id AND n.number > a.number))::boolean AS revivable
FROM leases l JOIN attempts a ON a.id = l.attempt_id JOIN trials t ON t.id = a.trial_id
WHERE l.attempt_id = ANY (@attempt_ids::uuid[]) AND l.state <> 'released'
ORDER BY l.created_at;

-- name: ListLeases :many
-- The current leases by host, GPU and age, with the newest measured use: -1 = not measured. A GPU and its
-- host are not read at the same moment, so a figure missing in the newest point comes from the point before,
-- within 10 s or one interval (an attempt has 250 at least). measured_second is when the newest point begins,
-- since started_at.
SELECT l.attempt_id, l.sweep_id, l.host_id, coalesce(l.device_id, '')::text AS device_id, l.memory_bytes, l.cpu_milli, l.device_bytes, l.contexts,
    l.exclusive, l.exclusive_device, l.device_activity, l.state, l.created_at, a.state AS attempt_state, a.number, a.stage, a.purpose, a.spill_bytes,
    t.number AS trial_number, s.name AS sweep_name, h.name AS host_name,
    coalesce(p.host_bytes, b.host_bytes, -1)::bigint AS measured_bytes, coalesce(p.device_bytes, b.device_bytes, -1)::bigint AS measured_device_bytes,
    coalesce(a.started_at, a.placed_at)::timestamptz AS started_at, coalesce(p.at_second, -1)::integer AS measured_second
FROM leases l JOIN attempts a ON a.id = l.attempt_id JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id JOIN hosts h ON h.id = l.host_id
    LEFT JOIN LATERAL (
        SELECT m.at_second, m.host_bytes, m.device_bytes FROM memory_points m WHERE m.attempt_id = l.attempt_id ORDER BY m.at_second DESC LIMIT 1
    ) p ON true LEFT JOIN LATERAL (
        SELECT m.host_bytes, m.device_bytes FROM memory_points m
        WHERE m.attempt_id = l.attempt_id AND m.at_second < p.at_second AND m.at_second >= p.at_second - greatest(10, p.at_second / 250)
        ORDER BY m.at_second DESC LIMIT 1
    ) b ON true
WHERE l.state <> 'released'
    AND (l.host_id, coalesce(l.device_id, ''), l.created_at, l.attempt_id) > (@after_host::uuid, @after_device::text, @after_time::timestamptz, @after_attempt::uuid)
ORDER BY l.host_id, coalesce(l.device_id, ''), l.created_at, l.attempt_id
LIMIT @max_rows;

-- name: ListHolders :many
-- Of each sweep, when its oldest attempt was placed that runs on one of these hosts, on one of these GPUs or for one of these sweeps.
SELECT l.sweep_id, l.host_id, coalesce(l.device_id, '')::text AS device_id, min(a.placed_at)::timestamptz AS oldest
FROM leases l JOIN attempts a ON a.id = l.attempt_id
WHERE l.state = 'held' AND a.state IN ('placed', 'running')
    AND (l.host_id::text = ANY (@ids::text[]) OR l.device_id = ANY (@ids::text[]) OR l.sweep_id::text = ANY (@ids::text[]))
GROUP BY l.sweep_id, l.host_id, l.device_id;
