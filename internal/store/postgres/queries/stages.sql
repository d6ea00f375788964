-- name: PageOutputs :many
-- Keys of the outputs before a position, newest first.
SELECT o.key, o.made_at AS at FROM stage_outputs o JOIN attempts a ON a.id = o.attempt_id JOIN trials t ON t.id = a.trial_id
JOIN sweeps s ON s.id = t.sweep_id
WHERE s.deleted_at IS NULL AND (o.made_at, o.key) < (@before_at::timestamptz, @before_key::text)
ORDER BY o.made_at DESC, o.key DESC LIMIT @max_rows;

-- name: PageSweepStages :many
-- The same of the keys that trials of a sweep use. Keys without an output come first: they have the time @none.
SELECT k.key::text AS key, k.at::timestamptz AS at FROM (
    SELECT u.key, coalesce(o.made_at, @none::timestamptz) AS at
    FROM (SELECT DISTINCT unnest(t.stage_keys) AS key FROM trials t WHERE t.sweep_id = @sweep_id AND t.stage_keys <> '{}') u LEFT JOIN (
        stage_outputs o JOIN attempts a ON a.id = o.attempt_id JOIN trials m ON m.id = a.trial_id
        JOIN sweeps s ON s.id = m.sweep_id AND s.deleted_at IS NULL) ON o.key = u.key
) k WHERE (k.at, k.key) < (@before_at::timestamptz, @before_key::text)
ORDER BY k.at DESC, k.key DESC LIMIT @max_rows;

-- name: FindStages :many
-- Keys that begin so, two at most. A key without an output is found while a trial waits for it or failed in it; a whole key always.
SELECT key::text AS key FROM stage_outputs WHERE starts_with(key, @prefix::text)
UNION
SELECT k.key FROM trials t CROSS JOIN LATERAL unnest(t.stage_keys) AS k (key)
WHERE t.finished_at IS NULL AND t.stage_keys <> '{}' AND starts_with(k.key, @prefix::text)
UNION
SELECT failed_stage FROM trials WHERE failed_stage <> '' AND starts_with(failed_stage, @prefix::text)
UNION
SELECT @prefix::text WHERE EXISTS (SELECT 1 FROM trials t WHERE t.stage_keys @> ARRAY[@prefix::text] AND t.stage_keys <> '{}')
LIMIT 2;

-- name: StagesByKey :many
-- Stages with the trial that ran each, or without an output the newest trial that uses it.
SELECT k.key::text AS key, coalesce(s.spec -> 'stages' -> (array_position(t.stage_keys, k.key::text) - 1) ->> 'name', '')::text AS stage,
    s.id AS sweep_id, s.name AS sweep_name, t.number AS trial,
    (SELECT count(*) FROM trials u WHERE u.stage_keys @> ARRAY[k.key::text] AND u.stage_keys <> '{}' AND u.finished_at IS NULL)::integer AS open_trials,
    (SELECT count(*) FROM trials u WHERE u.stage_keys @> ARRAY[k.key::text] AND u.stage_keys <> '{}' AND u.finished_at IS NOT NULL)::integer AS ended_trials,
    EXISTS (SELECT 1 FROM held_outputs l WHERE l.attempt_id = o.attempt_id) AS held,
    coalesce(o.attempt_id::text, '')::text AS attempt_id, coalesce(h.id::text, '')::text AS host_id, coalesce(h.name, '')::text AS host_name,
    coalesce(o.made_at, now())::timestamptz AS made_at, greatest(coalesce(a.finished_at - a.started_at, '0'), '0')::interval AS took,
    CASE WHEN a.files_state = 'stored' THEN (SELECT count(*) FROM artifacts f WHERE f.attempt_id = a.id) ELSE 0 END::integer AS files,
    CASE WHEN a.files_state = 'stored' THEN (SELECT coalesce(sum(f.bytes), 0) FROM artifacts f WHERE f.attempt_id = a.id) ELSE 0 END::bigint AS bytes,
    coalesce(CASE
        WHEN a.files_state = 'stored' AND a.files_left_out = 0 THEN ''
        WHEN a.outputs_removed_at IS NOT NULL THEN 'its files were removed: ' || a.outputs_removed_why
        WHEN h.removed_at >= h.last_seen_at THEN 'its host was removed'
        WHEN h.last_seen_at <= now() - @silent::interval THEN 'its host is silent' END, '')::text AS lost
FROM unnest(@keys::text[]) AS k (key) LEFT JOIN (
    stage_outputs o JOIN attempts a ON a.id = o.attempt_id JOIN hosts h ON h.id = a.host_id
    JOIN trials m ON m.id = a.trial_id JOIN sweeps d ON d.id = m.sweep_id AND d.deleted_at IS NULL) ON o.key = k.key
JOIN trials t ON t.id = coalesce(m.id, (
    SELECT n.id FROM trials n JOIN sweeps w ON w.id = n.sweep_id
    WHERE n.stage_keys @> ARRAY[k.key::text] AND n.stage_keys <> '{}' AND w.deleted_at IS NULL ORDER BY n.created_at DESC, n.number DESC LIMIT 1))
JOIN sweeps s ON s.id = t.sweep_id;

-- name: StageSources :many
-- The trials whose values decide a key, and after it the newest other outputs of the same stage.
SELECT k.key::text AS key, t.number AS trial, t.params, sqlc.embed(s) FROM (
    SELECT @key::text AS key, m.id AS trial_id, 'infinity'::timestamptz AS at FROM trials m WHERE m.sweep_id = @sweep_id AND m.number = @trial
    UNION ALL
    (SELECT o.key, a.trial_id, o.made_at FROM stage_outputs o JOIN attempts a ON a.id = o.attempt_id
    WHERE o.stage = @stage AND o.key <> @key::text ORDER BY o.made_at DESC LIMIT @max_rows)
) k JOIN trials t ON t.id = k.trial_id JOIN sweeps s ON s.id = t.sweep_id
WHERE s.deleted_at IS NULL ORDER BY k.at DESC, k.key;

-- name: ForgetStageOutput :one
-- Forgets an output that is not held, and asks its host to remove the files, as AskOutputRemoval. It returns the number of outputs.
WITH gone AS (
    DELETE FROM stage_outputs o WHERE o.key = @key AND NOT EXISTS (SELECT 1 FROM held_outputs l WHERE l.attempt_id = o.attempt_id)
    RETURNING o.attempt_id
), noted AS (
    UPDATE attempts u SET outputs_removed_at = coalesce(u.outputs_removed_at, now()),
        outputs_removed_why = CASE WHEN u.outputs_removed_at IS NULL THEN @why::text ELSE u.outputs_removed_why END,
        files_state = CASE WHEN u.files_state = 'lost' THEN u.files_state ELSE 'removed' END,
        files_problem = CASE WHEN u.files_state = 'lost' THEN u.files_problem ELSE @why::text END
    FROM gone WHERE u.id = gone.attempt_id RETURNING u.host_id, u.id, u.trial_id
), asked AS (
    INSERT INTO output_removals (host_id, attempt_id, trial_id) SELECT host_id, id, trial_id FROM noted
    ON CONFLICT DO NOTHING
), unnamed AS (
    DELETE FROM artifacts f USING gone WHERE f.attempt_id = gone.attempt_id
)
SELECT count(*) FROM noted;

-- name: LaterOutputs :many
-- Keys of outputs that are not held and were made from this one, the last first.
SELECT DISTINCT l.key, l.made_at FROM trials t JOIN stage_outputs l ON l.key = ANY (t.stage_keys[array_position(t.stage_keys, @key::text) + 1:])
WHERE t.stage_keys @> ARRAY[@key::text] AND NOT EXISTS (SELECT 1 FROM held_outputs h WHERE h.attempt_id = l.attempt_id)
ORDER BY l.made_at DESC;

-- name: StageHolders :many
-- A sweep with a trial that needs this output: with an unfinished trial, or else with a container that is being removed.
SELECT s.id, s.name, (t.finished_at IS NULL)::boolean AS open
FROM stage_outputs o JOIN trials t ON t.stage_keys @> ARRAY[o.key] AND t.stage_keys <> '{}' JOIN sweeps s ON s.id = t.sweep_id
WHERE o.key = @key AND (t.finished_at IS NULL OR EXISTS (
    SELECT 1 FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE a.trial_id = t.id AND l.state <> 'released'))
ORDER BY open DESC, t.created_at DESC LIMIT 1;
