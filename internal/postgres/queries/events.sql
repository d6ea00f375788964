-- name: Announce :exec
-- Writes an event and wakes those who listen on the channels, once the transaction commits.
WITH event AS (
    INSERT INTO events (kind, sweep_id, subject, data) VALUES (@kind, sqlc.narg('sweep_id')::uuid, @subject, @data)
)
SELECT pg_notify(channel, '') FROM unnest(@channels::text[]) AS channel;

-- name: StampEvents :many
-- Numbers what is committed, in the order of ids. Of an unnested array the planner expects few rows and looks each up by
-- its id; of a plain LIMIT it expects so many that it reads the whole table each time.
WITH unstamped AS (
    SELECT unnest(ARRAY(SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT @max_rows FOR UPDATE SKIP LOCKED)) AS id
), numbered AS MATERIALIZED (
    SELECT id, nextval('event_sequence') AS sequence FROM unstamped
)
UPDATE events e SET sequence = n.sequence FROM numbered n WHERE e.id = n.id
RETURNING e.sequence;

-- name: ListEvents :many
SELECT sequence::bigint AS sequence, kind, sweep_id, subject, data, created_at FROM events
WHERE sequence > @after_sequence::bigint AND (sqlc.narg('sweep_id')::uuid IS NULL OR sweep_id = sqlc.narg('sweep_id')::uuid)
ORDER BY sequence
LIMIT @max_rows;

-- name: LastEventSequence :one
SELECT coalesce(max(sequence), 0)::bigint FROM events;

-- name: FirstEventSequence :one
SELECT coalesce(min(sequence), 0)::bigint FROM events;

-- name: DeleteOldEvents :execrows
-- The newest stays, so that a stream that read it is not told that something is missing.
DELETE FROM events WHERE id IN (
    SELECT e.id FROM events e
    WHERE e.created_at < now() - @keep::interval AND e.sequence < (SELECT max(sequence) FROM events)
    ORDER BY e.created_at LIMIT @max_rows);
