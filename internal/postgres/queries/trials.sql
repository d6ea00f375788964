-- name: InsertShape :exec
INSERT INTO shapes (key, shape) VALUES (@key, @shape) ON CONFLICT (key) DO NOTHING;

-- name: GetShape :one
SELECT shape FROM shapes WHERE key = @key;

-- name: InsertTrial :exec
INSERT INTO trials (id, sweep_id, number, params, shape_key)
VALUES (@id, @sweep_id, @number, @params, @shape_key);

-- name: GetTrial :one
SELECT * FROM trials WHERE sweep_id = @sweep_id AND number = @number;

-- name: GetTrialByID :one
SELECT * FROM trials WHERE id = @id;

-- name: ListTrials :many
SELECT t.*, (SELECT count(*) FROM attempts a WHERE a.trial_id = t.id)::integer AS attempts,
    coalesce((SELECT r.reasons FROM placement_requests r WHERE r.trial_id = t.id AND r.state = 'waiting'
        ORDER BY r.requested_at DESC LIMIT 1), '[]')::jsonb AS reasons
FROM trials t
WHERE t.sweep_id = @sweep_id AND t.number > @after_number
  AND (cardinality(@states::text[]) = 0 OR t.state = ANY (@states::text[]))
ORDER BY t.number
LIMIT @max_rows;

-- name: ListTrialParams :many
SELECT number, params FROM trials WHERE sweep_id = @sweep_id ORDER BY number;

-- name: ListTrialNumbers :many
SELECT number FROM trials WHERE sweep_id = @sweep_id AND number >= @first_number ORDER BY number;

-- name: CountSweepTrials :one
SELECT count(*)::integer FROM trials WHERE sweep_id = @sweep_id;

-- name: SetTrialState :execrows
-- The first terminal state wins; a trial that has ended does not change any more.
UPDATE trials
SET state = @state, failure_kind = @failure_kind, message = @message, value = @value,
    started_at = CASE WHEN @state = 'running' THEN coalesce(started_at, now()) ELSE started_at END,
    finished_at = CASE WHEN @state IN ('succeeded', 'failed', 'infeasible', 'canceled') THEN now() END
WHERE id = @id AND finished_at IS NULL;
