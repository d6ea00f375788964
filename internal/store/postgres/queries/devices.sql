-- name: ListDevices :many
-- Devices that their workers find, or found until a while ago, and devices with leases; with @forgotten also
-- long lost ones; or one by its id.
SELECT d.*, coalesce(now() - d.lost_at > @grace::interval, false)::boolean AS forgotten, coalesce(l.attempts, 0)::integer AS attempts, coalesce(l.exclusive, false)::boolean AS exclusive, coalesce(l.activity, 0)::bigint AS activity
FROM devices d LEFT JOIN (
    SELECT device_id, count(*) AS attempts, bool_or(exclusive_device) AS exclusive, sum(device_activity) AS activity
    FROM leases WHERE device_id IS NOT NULL AND state <> 'released' AND (sqlc.narg(id)::text IS NULL OR device_id = sqlc.narg(id))
    GROUP BY device_id) l ON l.device_id = d.id
WHERE d.id = sqlc.narg(id)
    OR sqlc.narg(id)::text IS NULL AND (@forgotten::boolean OR d.lost_at IS NULL OR now() - d.lost_at <= @grace::interval OR l.attempts > 0)
ORDER BY d.host_id, d.id;

-- name: ListDevicesElsewhere :many
-- Devices with these ids on another host, whose worker serves them or which still has
-- leases on them.
SELECT d.id, h.name AS host_name, EXISTS (SELECT 1 FROM leases l WHERE l.device_id = d.id AND l.state <> 'released') AS holds
FROM devices d JOIN hosts h ON h.id = d.host_id
WHERE d.id = ANY (@ids::text[]) AND d.host_id <> @host_id
    AND (d.lost_at IS NULL AND (h.removed_at IS NULL OR h.removed_at < h.last_seen_at) AND now() - h.last_seen_at <= @lost_after::interval
        OR EXISTS (SELECT 1 FROM leases l WHERE l.device_id = d.id AND l.state <> 'released'))
ORDER BY d.id;

-- name: RegisterDevices :exec
-- Stores the devices that a worker found. The capacity of a device never falls below its bookings, and its
-- mode stays as long as it has MPS clients: only MPS clients can join them. A device for one attempt at a
-- time is limited to one, whatever its mode.
INSERT INTO devices AS d (id, host_id, model, profile, mode, memory_bytes, headroom_bytes, free_bytes, max_contexts, mps_contexts, max_attempts, problem, mps_problem)
SELECT unnest(@ids::text[]), @host_id::uuid, unnest(@models::text[]), unnest(@profiles::text[]), unnest(@modes::text[]), unnest(@memory_bytes::bigint[]),
    unnest(@headroom_bytes::bigint[]), unnest(@free_bytes::bigint[]), unnest(@max_contexts::integer[]), unnest(@mps_contexts::integer[]), unnest(@max_attempts::integer[]), unnest(@problems::text[]), unnest(@mps_problems::text[])
ON CONFLICT (id) DO UPDATE SET
    host_id = excluded.host_id,
    model = excluded.model,
    profile = excluded.profile,
    mode = CASE WHEN d.contexts_reserved > 0 AND d.mode = 'mps' THEN d.mode ELSE excluded.mode END,
    memory_bytes = excluded.memory_bytes,
    headroom_bytes = least(excluded.headroom_bytes, excluded.memory_bytes - d.reserved_bytes),
    free_bytes = excluded.free_bytes,
    max_contexts = greatest(excluded.max_contexts, d.contexts_reserved),
    mps_contexts = excluded.mps_contexts,
    max_attempts = excluded.max_attempts,
    problem = excluded.problem,
    mps_problem = excluded.mps_problem,
    lost_at = NULL;

-- name: LoseDevices :exec
-- The devices of a host that its worker did not find any more.
UPDATE devices SET lost_at = coalesce(lost_at, now()) WHERE host_id = @host_id AND id <> ALL (@ids::text[]);

-- name: TouchDevices :exec
WITH locked AS (
    SELECT d.id, u.free_bytes, u.problem, u.mps_problem
    FROM devices d JOIN (SELECT unnest(@ids::text[]) AS id, unnest(@free_bytes::bigint[]) AS free_bytes, unnest(@problems::text[]) AS problem,
        unnest(@mps_problems::text[]) AS mps_problem) u ON u.id = d.id
    WHERE d.host_id = @host_id
    ORDER BY d.id FOR NO KEY UPDATE OF d
)
UPDATE devices d SET free_bytes = l.free_bytes, problem = l.problem, mps_problem = l.mps_problem FROM locked l WHERE d.id = l.id;

-- name: CordonDevice :execrows
UPDATE devices SET cordoned_at = coalesce(cordoned_at, now()), cordon_reason = @reason WHERE id = @id;

-- name: ReadyDevice :execrows
UPDATE devices SET cordoned_at = NULL, cordon_reason = '' WHERE id = @id;
