-- name: AddMachinePoints :exec
-- The current use of a host and its GPUs; the maximum of each minute is stored. Of each attempt the newest
-- measurement counts, as in ListLeases. Without attempts the use is 0, which does not replace a minute whose
-- attempts were not measured. free_bytes of a GPU gives back no more of an attempt than its reservation
-- (gpu.Meter.FreeBeside): use beyond that is not counted for others. GPU values of a host with a problem may
-- be old.
WITH held AS (
    SELECT coalesce(l.device_id, '') AS device_id, coalesce(p.host_bytes, b.host_bytes) AS host_bytes,
        coalesce(p.device_bytes, b.device_bytes) AS device_bytes, coalesce(p.sm_milli, b.sm_milli) AS sm_milli,
        greatest(coalesce(p.device_bytes, b.device_bytes) - l.device_bytes, 0) AS beyond_bytes
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
SELECT h.id, '', date_trunc('minute', now()), coalesce(h.memory_bytes_target, h.memory_bytes), h.memory_reserved_bytes, s.host_bytes,
    CASE WHEN h.problem = '' THEN greatest(coalesce(h.memory_bytes_target, h.memory_bytes) - h.memory_free_bytes, 0) END, NULL, h.cpu_milli_reserved, s.attempts
FROM hosts h, LATERAL (
    SELECT count(*) AS attempts, CASE WHEN count(*) = 0 THEN 0 ELSE sum(host_bytes) END AS host_bytes FROM held
) s WHERE h.id = @host_id
UNION ALL
SELECT d.host_id, d.id, date_trunc('minute', now()), d.memory_bytes, d.reserved_bytes, s.device_bytes,
    CASE WHEN d.problem = '' AND h.problem = '' THEN greatest(d.memory_bytes - d.free_bytes - s.beyond_bytes, 0) END,
    CASE WHEN s.sm_milli > 1000 THEN 1000 ELSE s.sm_milli END, 0, s.attempts
FROM devices d JOIN hosts h ON h.id = d.host_id, LATERAL (
    SELECT count(*) AS attempts, CASE WHEN count(*) = 0 THEN 0 ELSE sum(device_bytes) END AS device_bytes,
        CASE WHEN count(*) = 0 THEN 0 ELSE sum(sm_milli) END AS sm_milli, coalesce(sum(beyond_bytes), 0) AS beyond_bytes
    FROM held WHERE device_id = d.id
) s WHERE d.host_id = @host_id AND d.lost_at IS NULL
ON CONFLICT (host_id, device_id, at) DO UPDATE SET
    memory_bytes = greatest(o.memory_bytes, excluded.memory_bytes), reserved_bytes = greatest(o.reserved_bytes, excluded.reserved_bytes),
    measured_bytes = nullif(greatest(o.measured_bytes, excluded.measured_bytes), CASE WHEN o.measured_bytes IS NULL OR excluded.measured_bytes IS NULL THEN 0 END),
    others_bytes = greatest(o.others_bytes, excluded.others_bytes),
    activity_milli = nullif(greatest(o.activity_milli, excluded.activity_milli), CASE WHEN o.activity_milli IS NULL OR excluded.activity_milli IS NULL THEN 0 END),
    cpu_milli = greatest(o.cpu_milli, excluded.cpu_milli),
    attempts = greatest(o.attempts, excluded.attempts);

-- name: ListMachinePoints :many
-- The maximum of each interval, by GPU and time, the host itself first. -1 = not measured. All intervals but
-- the last are whole, and there are no more of them than cover the time. Future points, from a clock that was
-- ahead, do not count.
SELECT device_id, date_bin(w.every, at, 'epoch')::timestamptz AS at, max(memory_bytes)::bigint AS memory_bytes,
    max(reserved_bytes)::bigint AS reserved_bytes, coalesce(nullif(max(measured_bytes), CASE WHEN count(measured_bytes) < count(*) THEN 0 END), -1)::bigint AS measured_bytes,
    coalesce(max(others_bytes), -1)::bigint AS others_bytes,
    coalesce(nullif(max(activity_milli), CASE WHEN count(activity_milli) < count(*) THEN 0 END), -1)::bigint AS activity_milli, max(cpu_milli)::bigint AS cpu_milli, max(attempts)::integer AS attempts
FROM machine_points, (SELECT @every::interval AS every, @covered::interval AS covered) w
WHERE host_id = @host_id AND at <= now() AND at >= date_bin(w.every, date_bin(w.every, now(), 'epoch') + w.every - w.covered, 'epoch')
GROUP BY device_id, 2 ORDER BY device_id, 2;

-- name: DeleteOldMachinePoints :execrows
DELETE FROM machine_points WHERE ctid IN (SELECT ctid FROM machine_points WHERE at < now() - @kept::interval ORDER BY at LIMIT @max_rows);
