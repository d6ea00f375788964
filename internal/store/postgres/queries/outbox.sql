-- name: InsertOutbox :exec
INSERT INTO outbox (kind, workflow_id, payload) VALUES (@kind, @workflow_id, @payload);

-- name: ClaimOutbox :many
-- Claims due messages: no other relay takes them until the claim ends. When the claimer dies, they are due
-- again at its end.
WITH due AS (
    SELECT id FROM outbox WHERE not_before <= now() ORDER BY id LIMIT @max_rows FOR UPDATE SKIP LOCKED
)
UPDATE outbox o SET not_before = now() + @claim::interval FROM due d WHERE o.id = d.id
RETURNING o.id, o.kind, o.workflow_id, o.payload, o.attempts AS tries;

-- name: SettleOutbox :exec
-- Deletes delivered messages, puts failed ones off, and returns claimed ones that were not tried.
WITH delivered AS (
    DELETE FROM outbox WHERE id = ANY (@delivered::bigint[])
), failed AS (
    UPDATE outbox o
    SET attempts = attempts + 1, not_before = now() + least(60, 0.2 * 2 ^ least(attempts, 9)) * interval '1 second', last_error = f.reason
    FROM (SELECT unnest(@failed::bigint[]) AS id, unnest(@reasons::text[]) AS reason) f
    WHERE o.id = f.id
)
UPDATE outbox SET not_before = now() WHERE id = ANY (@untried::bigint[]);

-- name: CountOutbox :one
-- The reason is that of the oldest message that has one.
SELECT count(*)::integer AS waiting, coalesce(now() - min(created_at), interval '0')::interval AS oldest,
    coalesce((array_agg(last_error ORDER BY id) FILTER (WHERE last_error <> ''))[1], '')::text AS reason
FROM outbox;

-- name: TellSweep :execrows
-- Tells a sweep the end of a trial that an earlier run of its workflow started: Temporal itself tells the
-- current run. The lock prevents a new run from beginning between the read and the commit.
WITH sweep AS MATERIALIZED (SELECT s.run_id FROM sweeps s WHERE s.id = @sweep_id FOR SHARE)
INSERT INTO outbox (kind, workflow_id, payload)
SELECT 'trial_finished', @workflow_id::text, @payload::jsonb FROM sweep WHERE sweep.run_id <> @run_id::text;
