-- name: InsertOutbox :exec
INSERT INTO outbox (kind, workflow_id, payload) VALUES (@kind, @workflow_id, @payload);

-- name: TakeOutbox :many
SELECT * FROM outbox WHERE not_before <= now() ORDER BY id LIMIT @max_rows FOR UPDATE SKIP LOCKED;

-- name: DeleteOutbox :exec
DELETE FROM outbox WHERE id = ANY (@ids::bigint[]);

-- name: DelayOutbox :exec
UPDATE outbox SET attempts = attempts + 1, not_before = now() + least(60, 0.2 * 2 ^ least(attempts, 9)) * interval '1 second'
WHERE id = ANY (@ids::bigint[]);

-- name: CountOutbox :one
SELECT count(*)::integer AS waiting, coalesce(extract(epoch FROM now() - min(created_at)), 0)::double precision AS oldest_seconds FROM outbox;

-- name: TellSweep :execrows
-- Tells a sweep of a trial that an earlier run of its workflow started: the current one hears from Temporal itself. The
-- lock keeps a new run from beginning between the look and the commit.
WITH sweep AS MATERIALIZED (SELECT s.run_id FROM sweeps s WHERE s.id = @sweep_id FOR SHARE)
INSERT INTO outbox (kind, workflow_id, payload)
SELECT 'trial_finished', @workflow_id::text, @payload::jsonb FROM sweep WHERE sweep.run_id <> @run_id::text;
