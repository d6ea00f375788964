-- name: DeleteSweep :execrows
-- Hides a sweep that has ended and holds nothing any more. Its rows go later, in small steps.
UPDATE sweeps s SET deleted_at = now()
WHERE s.id = @id AND s.finished_at IS NOT NULL AND s.deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released')
  AND NOT EXISTS (SELECT 1 FROM held_outputs o WHERE o.sweep_id = s.id);

-- name: HoldsOutputs :one
-- Whether a trial of another sweep needs what stages of this one wrote.
SELECT EXISTS (SELECT 1 FROM held_outputs o WHERE o.sweep_id = @sweep_id);

-- name: OldSweeps :many
-- Sweeps that ended longer ago than keep and hold nothing any more, oldest first.
SELECT s.id FROM sweeps s
WHERE s.deleted_at IS NULL AND s.finished_at < now() - @keep::interval
  AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released')
  AND NOT EXISTS (SELECT 1 FROM held_outputs o WHERE o.sweep_id = s.id)
ORDER BY s.finished_at LIMIT @max_rows;

-- name: SweepsWithOldOutputs :many
-- Without sweeps whose files wait for the store, or were stored a moment ago.
SELECT s.id FROM sweeps s
WHERE s.deleted_at IS NULL AND s.outputs_removed_at IS NULL AND s.finished_at < now() - @keep::interval
  AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released')
  AND NOT EXISTS (SELECT 1 FROM held_outputs o WHERE o.sweep_id = s.id)
  AND NOT EXISTS (
    SELECT 1 FROM trials t JOIN attempts a ON a.trial_id = t.id JOIN hosts h ON h.id = a.host_id
    WHERE t.sweep_id = s.id AND a.state = 'finished' AND h.stores_files AND (h.removed_at IS NULL OR h.removed_at < h.last_seen_at)
        AND (a.files_state = 'pending' OR a.files_state = 'stored' AND a.files_settled_at > now() - @fetch_time::interval))
ORDER BY s.finished_at LIMIT @max_rows;

-- name: DeletedSweeps :many
SELECT id FROM sweeps WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT @max_rows;

-- name: AskOutputRemoval :one
-- Asks the hosts to remove the files of some attempts of a sweep's first trials, checkpoints included, and returns of how many. why is
-- shown with each attempt. Their objects in the store go with the rows that name them (DeleteSweepFiles).
WITH noted AS (
    UPDATE attempts u SET outputs_removed_at = coalesce(u.outputs_removed_at, now()),
        outputs_removed_why = CASE WHEN u.outputs_removed_at IS NULL THEN @why::text ELSE u.outputs_removed_why END,
        files_state = CASE WHEN u.files_state = 'lost' THEN u.files_state ELSE 'removed' END,
        files_problem = CASE WHEN u.files_state = 'lost' THEN u.files_problem ELSE @why::text END
    WHERE u.id IN (
        SELECT a.id FROM (SELECT id FROM trials WHERE sweep_id = @sweep_id ORDER BY number LIMIT @max_trials) t JOIN attempts a ON a.trial_id = t.id
        WHERE a.outputs_removed_at IS NULL OR a.files_state = 'stored' LIMIT @max_rows)
    RETURNING u.host_id, u.id, u.trial_id
), asked AS (
    INSERT INTO output_removals (host_id, attempt_id, trial_id)
    SELECT host_id, id, trial_id FROM noted
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM noted;

-- name: MarkOutputsRemoved :exec
UPDATE sweeps SET outputs_removed_at = now() WHERE id = @id;

-- name: OldestOutputs :many
-- Trials of ended sweeps whose files a host may still have: first those of deleted sweeps, then by the end of
-- their sweep, oldest first; trials whose files wait for the store come after all. A sweep that holds a lease
-- has a container somewhere. The host's files are read first, with each trial by its id (OFFSET 0): history
-- is much longer.
WITH kept AS MATERIALIZED (
    SELECT a.id, a.number, a.state, a.files_state, t.id AS trial_id, t.sweep_id, t.number AS trial_number
    FROM attempts a CROSS JOIN LATERAL (SELECT * FROM trials k WHERE k.id = a.trial_id OFFSET 0) t
    WHERE a.host_id = @host_id AND a.outputs_removed_at IS NULL AND a.id NOT IN (SELECT attempt_id FROM held_outputs)
)
SELECT a.trial_id AS trial_id, array_agg(a.id ORDER BY a.number)::uuid[] AS attempt_ids, (now() - s.ended_at)::interval AS ended_for,
    bool_or(h.stores_files AND s.deleted_at IS NULL AND a.state = 'finished' AND a.files_state = 'pending')::boolean AS unstored
FROM (
    SELECT id, deleted_at, CASE WHEN deleted_at IS NULL THEN finished_at ELSE 'epoch' END AS ended_at FROM sweeps
    WHERE outputs_removed_at IS NULL AND finished_at IS NOT NULL
) s JOIN kept a ON a.sweep_id = s.id JOIN hosts h ON h.id = @host_id
WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released')
GROUP BY s.id, s.ended_at, s.deleted_at, a.trial_id, a.trial_number
ORDER BY unstored, s.ended_at, s.id, a.trial_number LIMIT @max_rows;

-- name: ExpireOutputs :many
-- Asks a host to remove the files of these trials of ended sweeps. It returns the number of trials of each
-- sweep. Stored files stay in the store; unstored files are lost.
WITH noted AS (
    UPDATE attempts a SET outputs_removed_at = now(), outputs_removed_why = @why::text,
        files_state = CASE WHEN a.files_state = 'pending' THEN 'lost' ELSE a.files_state END,
        files_problem = CASE WHEN a.files_state = 'pending' THEN 'removed before they were stored: ' || @why::text ELSE a.files_problem END
    FROM trials t JOIN sweeps s ON s.id = t.sweep_id
    WHERE t.id = a.trial_id AND t.id = ANY (@trial_ids::uuid[]) AND a.host_id = @host_id AND a.outputs_removed_at IS NULL
        AND a.id NOT IN (SELECT attempt_id FROM held_outputs) AND s.finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released')
    RETURNING a.host_id, a.id, a.trial_id, t.sweep_id
), asked AS (
    INSERT INTO output_removals (host_id, attempt_id, trial_id)
    SELECT host_id, id, trial_id FROM noted
    ON CONFLICT DO NOTHING
)
SELECT sweep_id, count(DISTINCT trial_id)::integer AS trials FROM noted GROUP BY sweep_id ORDER BY sweep_id;

-- name: OutputRemovals :many
SELECT attempt_id, trial_id FROM output_removals WHERE host_id = @host_id ORDER BY asked_at, attempt_id LIMIT @max_rows;

-- name: SilentRemovals :many
-- Hosts silent for longer than the grace, and the files that only they can remove.
SELECT h.name, h.data_dir, count(*)::integer AS attempts FROM output_removals r JOIN hosts h ON h.id = r.host_id
WHERE h.last_seen_at < now() - @silent::interval AND (h.removed_at IS NULL OR h.removed_at < h.last_seen_at)
GROUP BY h.id ORDER BY h.name, h.id;

-- name: OutputsRemoved :exec
DELETE FROM output_removals WHERE host_id = @host_id AND attempt_id = ANY (@attempt_ids::uuid[]);

-- name: DeferOutputs :exec
-- Files that could not be removed come last, so that they keep no others from it.
UPDATE output_removals SET asked_at = now() WHERE host_id = @host_id AND attempt_id = ANY (@attempt_ids::uuid[]);

-- name: DeleteSweepLogs :execrows
-- Of the first trials, by attempts, each read in the order of the key: without LATERAL PostgreSQL may read the rows of all
-- sweeps, as it expects to find one soon.
DELETE FROM log_chunks WHERE (attempt_id, "offset") IN (
    SELECT l.attempt_id, l."offset" FROM (SELECT id FROM trials WHERE sweep_id = @sweep_id ORDER BY number LIMIT @max_trials) t JOIN attempts a ON a.trial_id = t.id
        CROSS JOIN LATERAL (SELECT o.attempt_id, o."offset" FROM log_chunks o WHERE o.attempt_id = a.id ORDER BY o."offset" LIMIT @max_rows) l
    LIMIT @max_rows);

-- name: DeleteSweepMetrics :execrows
-- The same for metrics. By the places of rows: looking each up by its key again took as long as
-- the rest. Nothing writes points of a sweep that has ended.
DELETE FROM metrics WHERE ctid = ANY (ARRAY(
    SELECT m.ctid FROM (SELECT id FROM trials WHERE sweep_id = @sweep_id ORDER BY number LIMIT @max_trials) t JOIN attempts a ON a.trial_id = t.id
        CROSS JOIN LATERAL (SELECT o.ctid FROM metrics o WHERE o.attempt_id = a.id ORDER BY o.name, o.step LIMIT @max_rows) m
    LIMIT @max_rows));

-- name: DeleteSweepTrials :execrows
DELETE FROM trials WHERE id IN (SELECT t.id FROM trials t WHERE t.sweep_id = @sweep_id ORDER BY t.number LIMIT @max_trials);

-- name: DeleteSweepRow :execrows
DELETE FROM sweeps WHERE id = @id AND deleted_at IS NOT NULL;

-- name: DeleteOldAudit :execrows
-- Looks at the oldest rows, by the key in whose order they were written, so that no index on the time is needed.
DELETE FROM audit_log WHERE at < now() - @keep::interval AND id IN (SELECT a.id FROM audit_log a ORDER BY a.id LIMIT @max_rows);
