-- name: SetHostCheckpoints :exec
UPDATE hosts SET stores_checkpoints = @stores WHERE id = @id AND stores_checkpoints <> @stores;

-- name: ListEarlierCheckpoints :many
-- The checkpoints that earlier attempts left in /trial/checkpoint, newest first. A short probe has a
-- directory of its own. An attempt that could not be started has no container, but a time. coming: its host
-- is to store it. A host that is silent for a moment still counts, as all hosts are silent while the database
-- is away; the waiting attempt has its own timeout. A host that is silent for longer does not count.
SELECT e.id, e.number, e.host_id, h.name AS host_name, e.checkpoint_left, e.checkpoint_problem,
    (e.container_id <> '')::boolean AS ran,
    greatest(coalesce(coalesce(e.finished_at, now()) - e.started_at, '0'), '0')::interval AS took,
    (e.state = 'finished' AND e.checkpoint_left AND e.checkpoint_settled_at IS NULL AND h.stores_checkpoints AND h.removed_at IS NULL
        AND now() - h.last_seen_at < @silent::interval)::boolean AS coming,
    (e.state = 'abandoned')::boolean AS given_up,
    coalesce(c.sha256, ''::bytea)::bytea AS sha256, coalesce(c.bytes, 0)::bigint AS bytes, coalesce(c.stored_at, 'epoch')::timestamptz AS stored_at
FROM attempts a JOIN attempts e ON e.trial_id = a.trial_id AND e.stage = a.stage AND e.number < a.number
JOIN hosts h ON h.id = e.host_id
LEFT JOIN LATERAL (
    SELECT k.sha256, k.bytes, k.stored_at FROM checkpoints k WHERE k.attempt_id = e.id AND k.stored_at IS NOT NULL ORDER BY k.stored_at DESC LIMIT 1
) c ON true
WHERE a.id = @id AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = e.id AND r.short)
ORDER BY e.number DESC;

-- name: ListNewestCheckpoints :many
-- The waiting requests whose trial has a checkpoint in the store, or one that is coming as in ListEarlierCheckpoints,
-- and the hosts that have the newest one, or a newer one, in their directory. A short probe starts without a checkpoint.
SELECT r.attempt_id, ARRAY(SELECT k.host_id FROM attempts k
    WHERE k.trial_id = r.trial_id AND k.stage = r.stage AND k.number < r.number AND k.number >= newest.number
        AND k.container_id <> '' AND (k.state <> 'finished' OR k.checkpoint_left)
        AND NOT EXISTS (SELECT 1 FROM placement_requests p WHERE p.attempt_id = k.id AND p.short))::uuid[] AS hosts
FROM placement_requests r JOIN LATERAL (
    SELECT k.number FROM attempts k JOIN hosts h ON h.id = k.host_id
    WHERE k.trial_id = r.trial_id AND k.stage = r.stage AND k.number < r.number AND (
        EXISTS (SELECT 1 FROM checkpoints c WHERE c.attempt_id = k.id AND c.stored_at IS NOT NULL)
        OR k.state = 'finished' AND k.checkpoint_left AND k.checkpoint_settled_at IS NULL
            AND h.stores_checkpoints AND h.removed_at IS NULL AND now() - h.last_seen_at < @silent::interval
            AND NOT EXISTS (SELECT 1 FROM placement_requests p WHERE p.attempt_id = k.id AND p.short))
    ORDER BY k.number DESC LIMIT 1
) newest ON true
WHERE r.state = 'waiting' AND r.not_before <= now() AND r.number > 1 AND NOT r.short;

-- name: NoteResumed :execrows
UPDATE attempts SET resumed = @resumed WHERE id = @id AND token = @token AND state IN ('placed', 'running');

-- name: SettleOverCheckpoints :exec
-- Of attempts whose trial is over, or goes on in the same directory, nothing is to be stored. A short probe has another one.
UPDATE attempts a SET checkpoint_settled_at = now()
WHERE a.host_id = @host_id AND a.checkpoint_left AND a.checkpoint_settled_at IS NULL AND a.state = 'finished' AND (
    EXISTS (SELECT 1 FROM trials t WHERE t.id = a.trial_id AND t.finished_at IS NOT NULL)
    OR EXISTS (SELECT 1 FROM attempts n WHERE n.trial_id = a.trial_id AND n.number > a.number AND n.host_id = a.host_id AND n.container_id <> ''
        AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = n.id AND r.short)));

-- name: CheckpointsToStore :many
-- Attempts of a host that have ended, left a checkpoint and are to be run again. One that ended well is not.
SELECT a.id AS attempt_id, a.trial_id, a.stage, a.token FROM attempts a
WHERE a.host_id = @host_id AND a.checkpoint_left AND a.checkpoint_settled_at IS NULL AND a.state = 'finished' AND a.failure_kind <> 'ok'
ORDER BY a.finished_at, a.id LIMIT @max_rows;

-- name: SettleCheckpoint :exec
UPDATE attempts SET checkpoint_settled_at = now(), checkpoint_problem = @problem
WHERE id = @id AND token = @token AND state = 'finished' AND checkpoint_settled_at IS NULL;

-- name: BeginCheckpoint :execrows
-- No row: the attempt is not its host's any more, or its trial is over.
INSERT INTO checkpoints (attempt_id, trial_id, sha256, bytes)
SELECT a.id, a.trial_id, @sha256, @bytes
FROM attempts a JOIN trials t ON t.id = a.trial_id
WHERE a.id = @attempt_id AND a.token = @token AND a.state IN ('placed', 'running', 'finished') AND t.finished_at IS NULL
FOR SHARE OF a
ON CONFLICT (attempt_id, sha256) DO UPDATE SET bytes = excluded.bytes;

-- name: FinishCheckpoint :execrows
UPDATE checkpoints c SET stored_at = now() FROM attempts a
WHERE c.attempt_id = @attempt_id AND c.sha256 = @sha256 AND a.id = c.attempt_id AND a.token = @token
    AND a.state IN ('placed', 'running', 'finished');

-- name: ReplaceCheckpoints :many
-- Deletes the other checkpoints of an attempt, and those of the attempts of its trial before it. Returns their objects.
DELETE FROM checkpoints c USING attempts a, attempts own
WHERE own.id = @attempt_id AND a.trial_id = own.trial_id AND a.stage = own.stage AND a.number <= own.number
    AND c.attempt_id = a.id AND NOT (c.attempt_id = own.id AND c.sha256 = @sha256)
RETURNING c.sha256;

-- name: DeleteOverCheckpoints :execrows
-- Of trials that are over. The Cleaner takes their objects.
DELETE FROM checkpoints WHERE (attempt_id, sha256) IN (
    SELECT c.attempt_id, c.sha256 FROM checkpoints c JOIN trials t ON t.id = c.trial_id WHERE t.finished_at IS NOT NULL LIMIT @max_rows);
