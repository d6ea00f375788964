-- name: Announce :exec
-- Writes an event and wakes those who listen on the channels, once the transaction commits.
WITH event AS (
    INSERT INTO events (kind, sweep_id, subject, data) VALUES (@kind, sqlc.narg('sweep_id')::uuid, @subject, @data)
)
SELECT pg_notify(channel, '') FROM unnest(@channels::text[]) AS channel;

-- name: StampEvents :many
WITH unstamped AS (
    SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT @max_rows FOR UPDATE SKIP LOCKED
)
UPDATE events e SET sequence = nextval('event_sequence') FROM unstamped u WHERE e.id = u.id
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
DELETE FROM events WHERE sequence IS NOT NULL AND created_at < now() - @keep::interval;
