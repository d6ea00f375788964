-- name: UpsertMetrics :execrows
-- No row: the attempt is fenced.
INSERT INTO metrics (attempt_id, name, step, value, status, final, at)
SELECT a.id, unnest(@names::text[]), unnest(@steps::bigint[]), unnest(@metric_values::double precision[]),
    unnest(@statuses::text[]), unnest(@finals::boolean[]), unnest(@ats::timestamptz[])
FROM attempts a WHERE a.id = @attempt_id AND a.token = @token
ON CONFLICT (attempt_id, name, step) DO UPDATE SET
    value = excluded.value, status = excluded.status, final = excluded.final, at = excluded.at;

-- name: DropMetrics :execrows
-- No row: the attempt is fenced.
WITH ours AS (
    SELECT a.id FROM attempts a WHERE a.id = @attempt_id AND a.token = @token FOR SHARE
), dropped AS (
    DELETE FROM metrics m USING ours o WHERE m.attempt_id = o.id AND m.name = ANY(@names::text[])
)
SELECT id FROM ours;

-- name: ListMetrics :many
SELECT name, step, value, status, final, at FROM metrics
WHERE attempt_id = @attempt_id AND (@only_name::text = '' OR name = @only_name)
ORDER BY name, step
LIMIT @max_rows;

-- name: CurveAttempts :many
-- The newest attempt of each trial that counts, with the first and the last step of one metric. The result of a short probe
-- is thrown away, and what a stage reports is not the trial's.
SELECT a.trial_number, a.trial_state, a.id AS attempt_id,
    coalesce((SELECT min(m.step) FROM metrics m WHERE m.attempt_id = a.id AND m.name = @name), 0)::bigint AS low,
    coalesce((SELECT max(m.step) FROM metrics m WHERE m.attempt_id = a.id AND m.name = @name), 0)::bigint AS high
FROM (
    SELECT DISTINCT ON (t.number) t.number AS trial_number, t.state AS trial_state, n.id
    FROM trials t JOIN attempts n ON n.trial_id = t.id
    WHERE t.sweep_id = @sweep_id AND t.number = ANY (@numbers::integer[])
        AND n.stage = 'main' AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = n.id AND r.short)
    ORDER BY t.number, n.number DESC
) a
ORDER BY a.trial_number;

-- name: MetricNames :many
-- For each of the newest trials that ran, its newest attempt that counts. It finds names by steps through the
-- primary key, one for each name of an attempt, for any number of points.
WITH RECURSIVE looked AS MATERIALIZED (
    SELECT a.id FROM (
        SELECT o.id FROM trials o WHERE o.sweep_id = @sweep_id AND o.started_at IS NOT NULL ORDER BY o.number DESC LIMIT @max_trials
    ) t CROSS JOIN LATERAL (
        SELECT n.id FROM attempts n
        WHERE n.trial_id = t.id AND n.stage = 'main' AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = n.id AND r.short)
        ORDER BY n.number DESC LIMIT 1
    ) a
), names AS (
    SELECT l.id, (SELECT min(m.name) FROM metrics m WHERE m.attempt_id = l.id) AS name FROM looked l
    UNION ALL
    SELECT n.id, (SELECT min(m.name) FROM metrics m WHERE m.attempt_id = n.id AND m.name > n.name) FROM names n WHERE n.name IS NOT NULL
)
SELECT n.name::text AS name, count(*)::integer AS trials,
    max((SELECT max(m.step) FROM metrics m WHERE m.attempt_id = n.id AND m.name = n.name))::bigint AS last_step
FROM names n WHERE n.name IS NOT NULL
GROUP BY n.name ORDER BY n.name
LIMIT @max_rows;

-- name: ExportAttempts :many
-- The attempts of a sweep by trial and number, from the given one on. counting is the number of each trial's newest that
-- is no short probe; 0 = it has none.
SELECT a.id, t.number AS trial_number, a.number AS attempt_number,
    coalesce((
        SELECT max(n.number) FROM attempts n
        WHERE n.trial_id = a.trial_id AND n.stage = 'main' AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = n.id AND r.short)
    ), 0)::integer AS counting
FROM trials t JOIN sweeps s ON s.id = t.sweep_id JOIN attempts a ON a.trial_id = t.id
WHERE t.sweep_id = @sweep_id AND s.deleted_at IS NULL
    AND t.number >= @from_trial::integer AND (t.number, a.number) >= (@from_trial::integer, @from_attempt::integer)
ORDER BY t.number, a.number
LIMIT @max_rows;

-- name: ExportMetrics :many
-- The points of an attempt behind one, in the order of the primary key.
SELECT name, step, value, status, final, at FROM metrics
WHERE attempt_id = @attempt_id AND (name, step) > (@after_name::text, @after_step::bigint)
ORDER BY name, step
LIMIT @max_rows;
