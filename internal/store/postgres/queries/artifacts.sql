-- name: StoreMarked :one
SELECT EXISTS (SELECT 1 FROM artifact_stores WHERE store = @store);

-- name: NoteStoreMark :exec
INSERT INTO artifact_stores (store) VALUES (@store) ON CONFLICT DO NOTHING;

-- name: SetHostStores :exec
UPDATE hosts SET stores_files = @stores WHERE id = @id AND stores_files <> @stores;

-- name: FilesToStore :many
-- Ended attempts of a host whose files are due for the store, never failed ones first.
SELECT a.id, (a.started_at IS NOT NULL OR a.container_id <> '')::boolean AS ran,
    EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = a.id AND r.short)::boolean AS short, a.finished_at::timestamptz AS ended_at
FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id
WHERE a.host_id = @host_id AND a.state = 'finished' AND a.files_state = 'pending' AND s.deleted_at IS NULL
    AND (a.files_retry_at IS NULL OR a.files_retry_at <= now())
ORDER BY a.files_retry_at NULLS FIRST, a.finished_at, a.id LIMIT @max_rows;

-- name: ShareArtifacts :exec
-- While a transaction holds this, no object is removed from the store.
SELECT pg_advisory_xact_lock_shared(hashtextextended('objects of artifacts', 0));

-- name: LockArtifacts :exec
-- While a transaction holds this, no row names an object that none named
-- before.
SELECT pg_advisory_xact_lock(hashtextextended('objects of artifacts', 0));

-- name: ClaimFiles :execrows
-- No row: the files are not wanted any more.
INSERT INTO artifacts AS o (attempt_id, path, bytes, sha256)
SELECT a.id, unnest(@paths::text[]), unnest(@sizes::bigint[]), unnest(@digests::bytea[])
FROM (SELECT e.id FROM attempts e WHERE e.id = @attempt_id AND e.files_state = 'pending' FOR SHARE) a
ON CONFLICT (attempt_id, path) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256,
    stored_at = CASE WHEN o.sha256 = excluded.sha256 THEN o.stored_at END;

-- name: FilesStored :exec
UPDATE artifacts SET stored_at = coalesce(stored_at, now()) WHERE attempt_id = @attempt_id AND path = ANY (@paths::text[]);

-- name: SettleFiles :execrows
UPDATE attempts SET files_state = @state, files_problem = @problem, files_left_out = @left_out, files_retry_at = NULL, files_settled_at = now()
WHERE id = @id AND state = 'finished' AND files_state = 'pending';

-- name: DropClaims :exec
DELETE FROM artifacts WHERE attempt_id = @attempt_id AND stored_at IS NULL;

-- name: InsertLeftOut :exec
INSERT INTO artifacts_left_out (attempt_id, number, path, reason)
SELECT @attempt_id, unnest(@numbers::integer[]), unnest(@paths::text[]), unnest(@reasons::text[])
ON CONFLICT DO NOTHING;

-- name: NoteFiles :exec
UPDATE attempts SET files_problem = @problem WHERE id = @id AND files_state = 'pending' AND files_problem <> @problem;

-- name: DeferFiles :exec
-- Tries again after 5 s, and twice as late each time, an hour at most.
UPDATE attempts SET files_problem = @problem, files_tries = files_tries + 1,
    files_retry_at = now() + least(interval '5 seconds' * power(2, least(files_tries, 10)), interval '1 hour')
WHERE id = @id AND files_state = 'pending';

-- name: UnnamedObjects :many
SELECT d.digest::bytea AS digest FROM unnest(@digests::bytea[]) AS d (digest)
WHERE NOT EXISTS (SELECT 1 FROM artifacts o WHERE o.sha256 = d.digest)
    AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.sha256 = d.digest);

-- name: NoteUnnamed :exec
INSERT INTO artifacts_unnamed (sha256) SELECT d.digest FROM unnest(@digests::bytea[]) AS d (digest)
WHERE NOT EXISTS (SELECT 1 FROM artifacts o WHERE o.sha256 = d.digest)
    AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.sha256 = d.digest) ON CONFLICT DO NOTHING;

-- name: LongUnnamed :many
SELECT sha256 FROM artifacts_unnamed WHERE sha256 = ANY (@digests::bytea[]) AND since <= now() - @grace::interval;

-- name: ForgetUnnamed :exec
DELETE FROM artifacts_unnamed WHERE sha256 = ANY (@digests::bytea[]);

-- name: DeleteSweepFiles :execrows
-- By attempts, as DeleteSweepLogs, of the first trials.
DELETE FROM artifacts WHERE (attempt_id, path) IN (
    SELECT l.attempt_id, l.path FROM (SELECT id FROM trials WHERE sweep_id = @sweep_id ORDER BY number LIMIT @max_trials) t JOIN attempts a ON a.trial_id = t.id
        CROSS JOIN LATERAL (SELECT o.attempt_id, o.path FROM artifacts o WHERE o.attempt_id = a.id ORDER BY o.path LIMIT @max_rows) l
    LIMIT @max_rows);

-- name: FindTrial :one
SELECT t.sweep_id, t.number FROM trials t JOIN sweeps s ON s.id = t.sweep_id WHERE t.id = @id AND s.deleted_at IS NULL;

-- name: FileAttempt :one
-- The attempt of a trial whose files are shown: the one with the number, or with 0 the newest that counts; a
-- successful one goes before all others. The result of a short probe is thrown away.
SELECT a.id, a.number, a.state, a.host_id, h.stores_files, a.files_state, a.files_problem, a.files_left_out,
    (SELECT count(*) FROM artifacts o WHERE o.attempt_id = a.id AND o.stored_at IS NOT NULL)::integer AS files,
    (SELECT coalesce(sum(o.bytes), 0)::bigint FROM artifacts o WHERE o.attempt_id = a.id AND o.stored_at IS NOT NULL) AS bytes
FROM attempts a JOIN hosts h ON h.id = a.host_id
WHERE a.trial_id = @trial_id AND (a.number = @number::integer OR @number = 0 AND NOT EXISTS (
    SELECT 1 FROM placement_requests r WHERE r.attempt_id = a.id AND r.short))
ORDER BY (a.failure_kind = 'ok') DESC, a.number DESC LIMIT 1;

-- name: ListFiles :many
SELECT path, bytes, sha256, stored_at::timestamptz AS stored_at FROM artifacts
WHERE attempt_id = @attempt_id AND path > @after::text AND stored_at IS NOT NULL ORDER BY path LIMIT @max_rows;

-- name: GetFile :one
SELECT path, bytes, sha256, stored_at::timestamptz AS stored_at FROM artifacts
WHERE attempt_id = @attempt_id AND path = @path::text AND stored_at IS NOT NULL;

-- name: ListLeftOut :many
SELECT path, reason FROM artifacts_left_out WHERE attempt_id = @attempt_id ORDER BY number;

-- name: WaitingFiles :many
-- Attempts whose files wait for the store, by host, and why the try failed that failed last.
SELECT h.name AS host, count(*)::integer AS attempts, (now() - min(a.finished_at))::interval AS oldest,
    (array_agg(a.files_problem ORDER BY a.files_retry_at DESC NULLS LAST))[1]::text AS problem
FROM attempts a JOIN hosts h ON h.id = a.host_id
WHERE a.state = 'finished' AND a.files_state = 'pending' AND h.stores_files AND (h.removed_at IS NULL OR h.removed_at < h.last_seen_at)
GROUP BY h.id ORDER BY h.name, h.id;
