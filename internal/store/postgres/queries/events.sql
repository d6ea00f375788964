-- name: Announce :exec
-- Writes an event and wakes the listeners on the channels, once the transaction commits.
WITH event AS (
    INSERT INTO events (kind, sweep_id, subject, data) VALUES (@kind, sqlc.narg('sweep_id')::uuid, @subject, @data)
)
SELECT pg_notify(channel, '') FROM unnest(@channels::text[]) AS channel;

-- name: StampEvents :many
-- Numbers committed events, in the order of ids. For an unnested array the planner expects few rows and looks
-- each up by its id; for a plain LIMIT it expects many and reads the whole table each time.
WITH unstamped AS (
    SELECT unnest(ARRAY(SELECT id FROM events WHERE sequence IS NULL ORDER BY id LIMIT @max_rows FOR UPDATE SKIP LOCKED)) AS id
), numbered AS MATERIALIZED (
    SELECT id, nextval('event_sequence') AS sequence FROM unstamped
)
UPDATE events e SET sequence = n.sequence FROM numbered n WHERE e.id = n.id
RETURNING e.sequence;

-- name: ListEvents :many
-- With the number of the trial that an event is about, which its writers need not know.
SELECT e.sequence::bigint AS sequence, e.kind, e.sweep_id, e.subject, e.data, e.created_at,
    coalesce(CASE
        WHEN e.subject !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN NULL
        WHEN e.kind LIKE 'trial.%' THEN (SELECT t.number FROM trials t WHERE t.id = e.subject::uuid)
        WHEN e.kind LIKE 'attempt.%' THEN (SELECT t.number FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.id = e.subject::uuid)
    END, 0)::integer AS trial_number
FROM events e
WHERE e.sequence > @after_sequence::bigint AND (cardinality(@sweep_ids::uuid[]) = 0 OR e.sweep_id = ANY (@sweep_ids::uuid[]))
ORDER BY e.sequence
LIMIT @max_rows;

-- name: BeginHistory :exec
-- Continues behind all sequences that the original of this copy, or another copy of it, can have given. The
-- new sequence is the number of microseconds since 1970; no installation publishes a million events a second.
-- It deletes only published events, because no event may be kept before a sequence that this database did not
-- give.
WITH gone AS (
    DELETE FROM events WHERE sequence IS NOT NULL
)
INSERT INTO events (sequence, kind, subject)
VALUES (setval('event_sequence', greatest(nextval('event_sequence') + 1000000000, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)), 'installation.adopted', 'installation');

-- name: LastEventSequence :one
SELECT coalesce(max(sequence), 0)::bigint FROM events;

-- name: FirstEventSequence :one
SELECT coalesce(min(sequence), 0)::bigint FROM events;

-- name: DeleteOldEvents :execrows
-- The newest stays, so that a stream that read it does not seem to miss one.
DELETE FROM events WHERE id IN (
    SELECT e.id FROM events e
    WHERE e.created_at < now() - @keep::interval AND e.sequence < (SELECT max(sequence) FROM events)
    ORDER BY e.created_at LIMIT @max_rows);
