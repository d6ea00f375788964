-- name: InsertSweep :exec
INSERT INTO sweeps (id, name, spec, image_digest, max_parallel, planned, created_by)
VALUES (@id, @name, @spec, @image_digest, @max_parallel, @planned, @created_by);

-- name: InsertSweepFile :exec
INSERT INTO sweep_files (sweep_id, spec) VALUES (@sweep_id, @spec);

-- name: GetSweepFile :one
SELECT spec FROM sweep_files WHERE sweep_id = @sweep_id;

-- name: InsertSweepEntries :exec
INSERT INTO sweep_entries (sweep_id, number, params)
SELECT @sweep_id, e.number, e.params FROM unnest(@params::json[]) WITH ORDINALITY e (params, number);

-- name: CountSweepEntries :one
-- Numbers have no gaps.
SELECT coalesce(max(number), 0)::integer FROM sweep_entries WHERE sweep_id = @sweep_id;

-- name: ListSweepEntries :many
SELECT params FROM sweep_entries WHERE sweep_id = @sweep_id AND number > @after_number ORDER BY number LIMIT @max_rows;

-- name: GetSweep :one
SELECT * FROM sweeps WHERE id = @id AND deleted_at IS NULL;

-- name: ListSweeps :many
SELECT * FROM sweeps
WHERE (created_at, id) < (@before_time::timestamptz, @before_id::uuid) AND deleted_at IS NULL
  AND (cardinality(@states::text[]) = 0 OR state = ANY (@states::text[]))
ORDER BY created_at DESC, id DESC
LIMIT @max_rows;

-- name: FindSweeps :many
SELECT id FROM sweeps
WHERE (starts_with(id::text, lower(@ref::text)) OR (lower(name) COLLATE "C" = lower(@ref::text) AND name = @ref::text)) AND deleted_at IS NULL
LIMIT 2;

-- name: CountTrials :many
SELECT sweep_id, state, count(*)::integer AS trials FROM trials
WHERE sweep_id = ANY (@sweep_ids::uuid[])
GROUP BY sweep_id, state;

-- name: CountOOMRetries :many
SELECT t.sweep_id, count(*)::integer AS retries
FROM attempts a JOIN trials t ON t.id = a.trial_id
WHERE t.sweep_id = ANY (@sweep_ids::uuid[]) AND a.failure_kind IN ('host_oom', 'device_oom')
  AND EXISTS (SELECT 1 FROM attempts later WHERE later.trial_id = a.trial_id AND later.number > a.number)
GROUP BY t.sweep_id;

-- name: BestTrials :many
-- The first of equals. Two index look-ups for any number of trials.
SELECT s.id AS sweep_id, t.number, t.value
FROM sweeps s
CROSS JOIN LATERAL (
    SELECT CASE WHEN s.minimizes
        THEN (SELECT min(value) FROM trials WHERE sweep_id = s.id)
        ELSE (SELECT max(value) FROM trials WHERE sweep_id = s.id) END AS value
) best
CROSS JOIN LATERAL (
    SELECT number, value FROM trials
    WHERE sweep_id = s.id AND value = best.value
    ORDER BY number
    LIMIT 1
) t
WHERE s.id = ANY (@sweep_ids::uuid[]);

-- name: SetSweepState :execrows
-- A sweep that has ended does not change any more.
UPDATE sweeps
SET state = @state, reason = @reason,
    resumed_at = CASE WHEN state = 'paused' AND @state = 'running' THEN now() ELSE resumed_at END,
    started_at = CASE WHEN @state <> 'pending' THEN coalesce(started_at, now()) ELSE started_at END,
    finished_at = CASE WHEN @state IN ('succeeded', 'failed', 'stopped', 'canceled') THEN now() END
WHERE id = @id AND finished_at IS NULL;

-- name: SetSweepMaxParallel :execrows
-- What waited behind the limit begins to wait for room when the limit is raised, as after a pause.
UPDATE sweeps
SET max_parallel = @max_parallel,
    resumed_at = CASE WHEN max_parallel > 0 AND (@max_parallel = 0 OR @max_parallel > max_parallel) THEN now() ELSE resumed_at END
WHERE id = @id AND finished_at IS NULL;

-- name: SetSweepNote :execrows
UPDATE sweeps SET note = @note WHERE id = @id AND deleted_at IS NULL AND note = coalesce(sqlc.narg(was)::text, note);

-- name: LockSweep :exec
SELECT pg_advisory_xact_lock(hashtextextended('sweep:' || @id::text, 0));

-- name: BeginSweepRun :one
-- Waits for trials that are ending and have read the earlier run (TellSweep).
UPDATE sweeps
SET run_id = @run_id, state = CASE WHEN state = 'pending' THEN 'running' ELSE state END,
    started_at = coalesce(started_at, now())
WHERE id = @id
RETURNING *;

-- name: FollowSweepRun :one
-- As BeginSweepRun, for a run that began without this database, which was restored from an older copy. A
-- sweep with neither a run nor trials has not begun: its run has not got that far.
UPDATE sweeps s
SET run_id = @run_id, state = CASE WHEN s.state = 'pending' THEN 'running' ELSE s.state END,
    started_at = coalesce(s.started_at, now())
WHERE s.id = @id AND s.run_id = @known AND s.finished_at IS NULL
  AND (s.run_id <> '' OR EXISTS (SELECT 1 FROM trials t WHERE t.sweep_id = s.id))
RETURNING s.state;

-- name: FirstTrialRan :one
SELECT started_at FROM trials WHERE sweep_id = @sweep_id AND started_at IS NOT NULL ORDER BY started_at LIMIT 1;

-- name: SweepsByID :many
-- As ListedTrials, of few rows.
SELECT * FROM sweeps WHERE id = ANY (ARRAY(SELECT unnest(@ids::uuid[]))) AND deleted_at IS NULL;
