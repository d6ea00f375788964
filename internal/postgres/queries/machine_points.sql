-- name: AddMachinePoints :exec
-- What a host and its GPUs hold now: the most of each minute stands. Of attempts counts the newest that was measured of each, as in ListLeases.
WITH held AS (
    SELECT coalesce(l.device_id, '') AS device_id, coalesce(p.host_bytes, b.host_bytes) AS host_bytes,
        coalesce(p.device_bytes, b.device_bytes) AS device_bytes, coalesce(p.sm_milli, b.sm_milli) AS sm_milli
    FROM leases l LEFT JOIN LATERAL (
        SELECT m.at_second, m.host_bytes, m.device_bytes, m.sm_milli FROM memory_points m WHERE m.attempt_id = l.attempt_id ORDER BY m.at_second DESC LIMIT 1
    ) p ON true LEFT JOIN LATERAL (
        SELECT m.host_bytes, m.device_bytes, m.sm_milli FROM memory_points m
        WHERE m.attempt_id = l.attempt_id AND m.at_second < p.at_second AND m.at_second >= p.at_second - greatest(10, p.at_second / 250)
        ORDER BY m.at_second DESC LIMIT 1
    ) b ON true
    WHERE l.host_id = @host_id AND l.state <> 'released'
)
INSERT INTO machine_points AS o (host_id, device_id, at, memory_bytes, reserved_bytes, measured_bytes, others_bytes, activity_milli, cpu_milli, attempts)
SELECT h.id, '', date_trunc('minute', now()), h.memory_bytes, h.memory_reserved_bytes, (SELECT sum(host_bytes) FROM held),
    CASE WHEN h.problem = '' THEN greatest(h.memory_bytes - h.memory_free_bytes, 0) END, NULL, h.cpu_milli_reserved, (SELECT count(*) FROM held)
FROM hosts h WHERE h.id = @host_id
UNION ALL
SELECT d.host_id, d.id, date_trunc('minute', now()), d.memory_bytes, d.reserved_bytes, (SELECT sum(device_bytes) FROM held WHERE device_id = d.id),
    CASE WHEN d.problem = '' THEN greatest(d.memory_bytes - d.free_bytes, 0) END,
    (SELECT CASE WHEN sum(sm_milli) > 1000 THEN 1000 ELSE sum(sm_milli) END FROM held WHERE device_id = d.id), 0, (SELECT count(*) FROM held WHERE device_id = d.id)
FROM devices d WHERE d.host_id = @host_id AND d.lost_at IS NULL
ON CONFLICT (host_id, device_id, at) DO UPDATE SET
    memory_bytes = greatest(o.memory_bytes, excluded.memory_bytes), reserved_bytes = greatest(o.reserved_bytes, excluded.reserved_bytes),
    measured_bytes = greatest(o.measured_bytes, excluded.measured_bytes), others_bytes = greatest(o.others_bytes, excluded.others_bytes),
    activity_milli = greatest(o.activity_milli, excluded.activity_milli), cpu_milli = greatest(o.cpu_milli, excluded.cpu_milli),
    attempts = greatest(o.attempts, excluded.attempts);

-- name: ListMachinePoints :many
-- The most of each interval, by GPU and time, the host itself first. -1 = not measured.
SELECT device_id, date_bin(@every::interval, at, 'epoch')::timestamptz AS at, max(memory_bytes)::bigint AS memory_bytes,
    max(reserved_bytes)::bigint AS reserved_bytes, coalesce(max(measured_bytes), -1)::bigint AS measured_bytes,
    coalesce(max(others_bytes), -1)::bigint AS others_bytes, coalesce(max(activity_milli), -1)::bigint AS activity_milli, max(cpu_milli)::bigint AS cpu_milli, max(attempts)::integer AS attempts
FROM machine_points
WHERE host_id = @host_id AND at > now() - @covered::interval
GROUP BY device_id, 2 ORDER BY device_id, 2;

-- name: DeleteOldMachinePoints :execrows
DELETE FROM machine_points WHERE ctid IN (SELECT ctid FROM machine_points WHERE at < now() - @kept::interval ORDER BY at LIMIT @max_rows);
