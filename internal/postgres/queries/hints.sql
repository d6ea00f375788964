-- name: ListMarks :many
-- How everything stands that hints tell of: when attempts with a lease stored points (microseconds; 0 = never), why requests
-- wait and what is kept for them (a hash), which hosts are silent. Of two parts that differ in their sweeps alone one is run: one part with OR would be
-- planned to read the leases of all sweeps. The points of a lease are looked up one by one (OFFSET 0): their table has a row
-- of every attempt, and most have ended.
WITH held AS (
    SELECT l.attempt_id, l.sweep_id FROM leases l WHERE l.state <> 'released' AND cardinality(@sweep_ids::uuid[]) = 0
    UNION ALL
    SELECT l.attempt_id, l.sweep_id FROM leases l WHERE l.state <> 'released' AND l.sweep_id = ANY (@sweep_ids::uuid[])
), waiting AS (
    SELECT r.attempt_id, r.sweep_id, r.reasons, r.kept_host_id, r.kept_device_id FROM placement_requests r WHERE r.state = 'waiting'
        AND (cardinality(@sweep_ids::uuid[]) = 0 OR r.sweep_id = ANY (@sweep_ids::uuid[]))
)
SELECT 'points'::text AS kind, h.attempt_id::text AS subject, h.sweep_id::text AS sweep_id,
    coalesce(extract(epoch FROM p.metrics_at) * 1000000, 0)::bigint AS value, coalesce(extract(epoch FROM p.memory_at) * 1000000, 0)::bigint AS memory, now()::timestamptz AS at
FROM held h CROSS JOIN LATERAL (SELECT n.metrics_at, n.memory_at FROM last_points n WHERE n.attempt_id = h.attempt_id OFFSET 0) p
UNION ALL
SELECT 'waiting', w.attempt_id::text, w.sweep_id::text, hashtextextended(concat_ws(' ', w.reasons, w.kept_host_id, w.kept_device_id), 0), 0, now() FROM waiting w
UNION ALL
SELECT 'host', o.id::text, '', (now() - o.last_seen_at > @lost_after::interval)::integer, 0, now()
FROM hosts o WHERE o.removed_at IS NULL OR o.removed_at < o.last_seen_at;

-- name: ListNewestPoints :many
-- The newest value of the objective and the newest memory of attempts. A GPU is not read at the same moment as its host: a
-- figure that the newest point lacks is of the point before (ListLeases). second, step and bytes: -1 = nothing.
WITH asked AS MATERIALIZED (
    SELECT a.id, a.trial_id, coalesce(a.started_at, a.placed_at) AS started_at, t.sweep_id, t.number
    FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.id = ANY (@attempt_ids::uuid[])
), objectives AS MATERIALIZED (
    SELECT s.id, s.metric AS name FROM sweeps s WHERE s.id IN (SELECT sweep_id FROM asked)
)
SELECT a.id, a.sweep_id, a.number AS trial_number, n.metrics_at, n.memory_at, o.name::text AS name,
    coalesce(m.step, -1)::bigint AS step, coalesce(m.value, 0)::double precision AS value, coalesce(m.status, '')::text AS status, coalesce(m.final, false)::boolean AS final, coalesce(m.at, 'epoch')::timestamptz AS at,
    coalesce(p.at_second, -1)::integer AS at_second, (a.started_at + greatest(p.at_second, 0) * interval '1 second')::timestamptz AS memory_from,
    coalesce(p.host_bytes, b.host_bytes, -1)::bigint AS host_bytes, coalesce(p.device_bytes, b.device_bytes, -1)::bigint AS device_bytes
FROM asked a JOIN objectives o ON o.id = a.sweep_id JOIN last_points n ON n.attempt_id = a.id
    LEFT JOIN LATERAL (
        SELECT c.step, c.value, c.status, c.final, c.at FROM metrics c WHERE c.attempt_id = a.id AND c.name = o.name ORDER BY c.step DESC LIMIT 1
    ) m ON true LEFT JOIN LATERAL (
        SELECT c.at_second, c.host_bytes, c.device_bytes FROM memory_points c WHERE c.attempt_id = a.id ORDER BY c.at_second DESC LIMIT 1
    ) p ON true LEFT JOIN LATERAL (
        SELECT c.host_bytes, c.device_bytes FROM memory_points c
        WHERE c.attempt_id = a.id AND c.at_second < p.at_second AND c.at_second >= p.at_second - greatest(10, p.at_second / 250)
        ORDER BY c.at_second DESC LIMIT 1
    ) b ON true;

-- name: ListWaitingReasons :many
SELECT r.attempt_id, r.sweep_id, t.number AS trial_number, r.reasons, now()::timestamptz AS at
FROM placement_requests r JOIN trials t ON t.id = r.trial_id
WHERE r.attempt_id = ANY (@attempt_ids::uuid[]) AND r.state = 'waiting';
