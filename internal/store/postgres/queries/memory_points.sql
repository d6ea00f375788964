-- name: PutMemoryPoints :one
-- How many attempts it is about: none means that the attempt is fenced. The newest second of all points, new or stored,
-- decides the interval (timeline.MemoryInterval): a worker's clock may have been set back since an earlier worker stored some.
-- Points that are closer than the interval, which has grown, are merged with the new ones. Largest figures stand, so the
-- same points may be told again.
WITH ours AS (
    SELECT a.id, greatest(@newest::integer, (SELECT max(m.at_second) FROM memory_points m WHERE m.attempt_id = a.id)) AS newest
    FROM attempts a WHERE a.id = @attempt_id AND a.token = @token
), spaced AS (
    SELECT o.id, 1 << (SELECT count(*) FROM generate_series(0, 30) doubled WHERE o.newest >> doubled >= @max_points::integer)::integer AS every
    FROM ours o
), close AS (
    DELETE FROM memory_points m USING spaced i WHERE m.attempt_id = i.id AND m.at_second % i.every <> 0
    RETURNING m.at_second, m.host_bytes, m.device_bytes, m.sm_milli
), points AS (
    SELECT c.at_second, c.host_bytes, c.device_bytes, c.sm_milli FROM close c
    UNION ALL
    SELECT n.second, n.host_bytes, n.device_bytes, n.sm_milli
    FROM jsonb_to_recordset(@points::jsonb) AS n (second integer, host_bytes bigint, device_bytes bigint, sm_milli integer)
), stored AS (
    INSERT INTO memory_points (attempt_id, at_second, host_bytes, device_bytes, sm_milli)
    SELECT i.id, p.at_second - p.at_second % i.every, max(p.host_bytes), max(p.device_bytes), max(p.sm_milli)
    FROM spaced i CROSS JOIN points p GROUP BY 1, 2 ORDER BY 2
    ON CONFLICT (attempt_id, at_second) DO UPDATE SET
        host_bytes = greatest(memory_points.host_bytes, excluded.host_bytes),
        device_bytes = greatest(memory_points.device_bytes, excluded.device_bytes),
        sm_milli = greatest(memory_points.sm_milli, excluded.sm_milli)
)
SELECT count(*)::integer FROM ours;

-- name: ListMemoryPoints :many
SELECT m.at_second AS second, (coalesce(a.started_at, a.placed_at) + m.at_second * interval '1 second')::timestamptz AS at,
    m.host_bytes, m.device_bytes, m.sm_milli
FROM memory_points m JOIN attempts a ON a.id = m.attempt_id
WHERE m.attempt_id = @attempt_id
ORDER BY m.at_second
LIMIT @max_rows;

-- name: DeleteSweepMemoryPoints :execrows
-- As DeleteSweepMetrics.
DELETE FROM memory_points WHERE ctid = ANY (ARRAY(
    SELECT m.ctid FROM (SELECT id FROM trials WHERE sweep_id = @sweep_id ORDER BY number LIMIT @max_trials) t JOIN attempts a ON a.trial_id = t.id
        CROSS JOIN LATERAL (SELECT o.ctid FROM memory_points o WHERE o.attempt_id = a.id ORDER BY o.at_second LIMIT @max_rows) m
    LIMIT @max_rows));
