-- name: SetHostCheckpoints :exec
UPDATE hosts SET stores_checkpoints = @stores WHERE id = @id AND stores_checkpoints <> @stores;

-- name: ListEarlierCheckpoints :many
-- The checkpoints that earlier attempts left in /trial/checkpoint, newest first. A short probe has a
-- directory of its own. An attempt that could not be started has no container, but a time. coming: its host
-- is to store it. A host that is silent for a moment still counts, as all hosts are silent while the database
-- is away; the waiting attempt has its own timeout. A host that is silent for longer does not count.
SELECT e.id, e.number, e.host_id, h.name AS host_name, e.checkpoint_left, e.checkpoint_problem,
    (e.container_id <> '')::boolean AS ran,
    greatest(coalesce(extract(epoch FROM coalesce(e.finished_at, now()) - e.started_at), 0), 0)::float8 AS took_seconds,
    (e.state = 'finished' AND e.checkpoint_left AND e.checkpoint_settled_at IS NULL AND h.stores_checkpoints AND h.removed_at IS NULL
        AND now() - h.last_seen_at < @silent::interval)::boolean AS coming,
    (e.state = 'abandoned')::boolean AS given_up,
    coalesce(c.id::text, '')::text AS checkpoint_id, coalesce(c.bytes, 0)::bigint AS bytes, coalesce(c.stored_at, 'epoch')::timestamptz AS stored_at
FROM attempts a JOIN attempts e ON e.trial_id = a.trial_id AND e.stage = a.stage AND e.number < a.number
JOIN hosts h ON h.id = e.host_id
LEFT JOIN LATERAL (
    SELECT k.id, k.bytes, k.stored_at FROM checkpoints k WHERE k.attempt_id = e.id AND k.stored_at IS NOT NULL ORDER BY k.stored_at DESC LIMIT 1
) c ON true
WHERE a.id = @id AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = e.id AND r.short)
ORDER BY e.number DESC;

-- name: ListNewestCheckpoints :many
-- The newest checkpoint of each trial that waits for a place, or has one on a host (host_id) and may still
-- fetch it there. The checkpoint is stored, or coming as in ListEarlierCheckpoints: then its size is known
-- once its host has named it. A short probe starts without a checkpoint.
WITH sought AS (
    SELECT r.attempt_id, r.trial_id, r.stage, r.number, ''::text AS host_id
    FROM placement_requests r WHERE r.state = 'waiting' AND r.not_before <= now() AND r.number > 1 AND NOT r.short
    UNION ALL
    SELECT a.id, a.trial_id, a.stage, a.number, a.host_id::text
    FROM leases l JOIN attempts a ON a.id = l.attempt_id JOIN hosts h ON h.id = a.host_id
    WHERE l.state <> 'released' AND a.state = 'placed' AND a.container_id = '' AND a.number > 1 AND h.stores_checkpoints
        AND NOT EXISTS (SELECT 1 FROM placement_requests p WHERE p.attempt_id = a.id AND p.short)
)
SELECT s.attempt_id, s.host_id::text AS host_id, greatest(stored.bytes, coming.bytes)::bigint AS bytes, (coming.number IS NOT NULL)::boolean AS coming,
    ARRAY(SELECT n.host_id FROM (
        SELECT DISTINCT ON (k.host_id) k.host_id,
            CASE WHEN k.container_id = '' THEN k.checkpoint_problem = '' ELSE k.state <> 'finished' OR k.checkpoint_left END AS has
        FROM attempts k JOIN hosts h ON h.id = k.host_id
        WHERE k.trial_id = s.trial_id AND k.stage = s.stage AND k.number < s.number AND k.number >= coalesce(coming.number, stored.number)
            AND (k.container_id <> '' OR k.checkpoint_problem <> '' OR h.stores_checkpoints)
            AND NOT EXISTS (SELECT 1 FROM placement_requests p WHERE p.attempt_id = k.id AND p.short)
        ORDER BY k.host_id, k.number DESC
    ) n WHERE n.has)::uuid[] AS hosts,
    ARRAY(SELECT f.host_id FROM attempts f JOIN leases l ON l.attempt_id = f.id
        WHERE s.host_id = '' AND f.trial_id = s.trial_id AND f.stage = s.stage AND f.number < s.number AND f.failure_kind = 'infra'
            AND f.container_id = '' AND f.checkpoint_problem <> '' AND l.released_at > now() - @refused_within::interval)::uuid[] AS refused,
    ARRAY(SELECT DISTINCT f.host_id FROM attempts f JOIN leases l ON l.attempt_id = f.id
        WHERE s.host_id = '' AND f.trial_id = s.trial_id AND f.stage = s.stage AND f.number < s.number AND f.failure_kind = 'infra'
            AND f.container_id = '' AND f.checkpoint_problem <> '' AND l.released_at > now() - @shunned_within::interval)::uuid[] AS shunned
FROM sought s
LEFT JOIN LATERAL (
    SELECT k.number, c.bytes FROM checkpoints c JOIN attempts k ON k.id = c.attempt_id
    WHERE c.trial_id = s.trial_id AND k.stage = s.stage AND k.number < s.number AND c.stored_at IS NOT NULL
    ORDER BY k.number DESC, c.stored_at DESC LIMIT 1
) stored ON true
LEFT JOIN LATERAL (
    SELECT k.number, coalesce((SELECT max(c.bytes) FROM checkpoints c WHERE c.attempt_id = k.id), 0) AS bytes
    FROM attempts k JOIN hosts h ON h.id = k.host_id
    WHERE k.trial_id = s.trial_id AND k.stage = s.stage AND k.number < s.number AND k.number >= coalesce(stored.number, 0)
        AND k.state = 'finished' AND k.checkpoint_left AND k.checkpoint_settled_at IS NULL
        AND h.stores_checkpoints AND h.removed_at IS NULL AND now() - h.last_seen_at < @silent::interval
        AND NOT EXISTS (SELECT 1 FROM placement_requests p WHERE p.attempt_id = k.id AND p.short)
    ORDER BY k.number DESC LIMIT 1
) coming ON true
WHERE stored.number IS NOT NULL OR coming.number IS NOT NULL;

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
SELECT a.id, a.trial_id, a.token FROM attempts a
WHERE a.host_id = @host_id AND a.checkpoint_left AND a.checkpoint_settled_at IS NULL AND a.state = 'finished' AND a.failure_kind <> 'ok'
ORDER BY a.finished_at, a.id LIMIT @max_rows;

-- name: SettleCheckpoint :exec
UPDATE attempts SET checkpoint_settled_at = now(), checkpoint_problem = @problem
WHERE id = @id AND token = @token AND state = 'finished' AND checkpoint_settled_at IS NULL;

-- name: BeginCheckpoint :execrows
-- No row: the attempt is not its host's any more, or its trial is over.
INSERT INTO checkpoints (id, attempt_id, trial_id, bytes)
SELECT @id, a.id, a.trial_id, @bytes
FROM attempts a JOIN trials t ON t.id = a.trial_id
WHERE a.id = @attempt_id AND a.token = @token AND a.state IN ('placed', 'running', 'finished') AND t.finished_at IS NULL
FOR SHARE OF a;

-- name: NameCheckpoint :exec
INSERT INTO checkpoint_entries (checkpoint_id, path, mode, uid, gid, changed_ns, bytes, sha256, target)
SELECT @id, unnest(@paths::text[]), unnest(@modes::bigint[]), unnest(@uids::integer[]), unnest(@gids::integer[]), unnest(@changed::bigint[]),
    unnest(@sizes::bigint[]), nullif(unnest(@digests::bytea[]), ''::bytea), unnest(@targets::text[]);

-- name: HalfCheckpoints :many
-- Begun and incomplete checkpoints: of the attempt itself, and of earlier attempts of its trial that no host
-- sends any more.
SELECT c.id FROM attempts own JOIN attempts a ON a.trial_id = own.trial_id JOIN checkpoints c ON c.attempt_id = a.id
WHERE own.id = @attempt_id AND c.stored_at IS NULL AND c.id <> @id AND (a.id = own.id OR a.number < own.number
    AND (a.state = 'abandoned' OR a.state = 'finished' AND (NOT a.checkpoint_left OR a.checkpoint_settled_at IS NOT NULL)));

-- name: FinishCheckpoint :many
UPDATE checkpoints c SET stored_at = now() FROM attempts a
WHERE c.id = @id AND a.id = c.attempt_id AND a.token = @token AND a.state IN ('placed', 'running', 'finished')
RETURNING c.trial_id;

-- name: SupersededCheckpoints :many
-- All whole ones of a trial but the newest, and halves of attempts before that one's.
WITH whole AS (
    SELECT c.id, a.number, row_number() OVER (ORDER BY a.number DESC, c.stored_at DESC, c.id) AS nth
    FROM checkpoints c JOIN attempts a ON a.id = c.attempt_id
    WHERE c.trial_id = @trial_id AND c.stored_at IS NOT NULL
)
SELECT w.id FROM whole w WHERE w.nth > 1
UNION ALL
SELECT c.id FROM checkpoints c JOIN attempts a ON a.id = c.attempt_id JOIN whole w ON w.nth = 1 AND a.number < w.number
WHERE c.trial_id = @trial_id AND c.stored_at IS NULL;

-- name: DropCheckpoints :many
-- Returns the objects that they named.
WITH dropped AS (
    DELETE FROM checkpoints WHERE id = ANY (@ids::uuid[]) RETURNING id
)
SELECT DISTINCT e.sha256::bytea AS sha256 FROM checkpoint_entries e JOIN dropped d ON d.id = e.checkpoint_id WHERE e.sha256 IS NOT NULL;

-- name: ListCheckpoint :many
SELECT e.path, e.mode, e.uid, e.gid, e.changed_ns, e.bytes, coalesce(e.sha256, ''::bytea)::bytea AS sha256, e.target
FROM checkpoint_entries e JOIN checkpoints c ON c.id = e.checkpoint_id
WHERE e.checkpoint_id = @id AND c.stored_at IS NOT NULL ORDER BY e.path;

-- name: DeleteOverCheckpoints :execrows
-- Of trials that are over. The Cleaner takes their objects.
DELETE FROM checkpoints WHERE id IN (
    SELECT c.id FROM checkpoints c JOIN trials t ON t.id = c.trial_id WHERE t.finished_at IS NOT NULL LIMIT @max_rows);
