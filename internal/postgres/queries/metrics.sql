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
