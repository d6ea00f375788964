-- name: InsertShape :exec
INSERT INTO shapes (key, shape, family) VALUES (@key, @shape, @family) ON CONFLICT (key) DO NOTHING;

-- name: InsertTrial :exec
INSERT INTO trials (id, sweep_id, number, params, shape_key, origin, stage_keys, stage_shapes, state, message, finished_at)
VALUES (@id, @sweep_id, @number, @params, @shape_key, @origin, @stage_keys, @stage_shapes,
    CASE WHEN @lost::text = '' THEN 'pending' ELSE 'canceled' END, @lost, CASE WHEN @lost <> '' THEN now() END);

-- name: GetPlannedTrial :one
-- attempts is the number of the last: an attempt given back has no row for its second request.
SELECT sqlc.embed(t), s.spec, coalesce((SELECT max(a.number) FROM attempts a WHERE a.trial_id = t.id), 0)::integer AS attempts
FROM trials t JOIN sweeps s ON s.id = t.sweep_id
WHERE t.sweep_id = @sweep_id AND t.number = @number;

-- name: StageStates :many
-- The stages of a trial in order. An output outside the store is lost once its host is removed, or silent for long.
-- (SELECT @x) hides a value from the planner: a plan for this value alone then looks no cheaper than one for all, which it
-- keeps. It plans the view's joins for milliseconds.
SELECT k.key, EXISTS (SELECT 1 FROM shared_outputs o WHERE o.key = k.key AND o.seen_at > now() - (SELECT @silent::interval)) AS known,
    EXISTS (
        SELECT 1 FROM stage_outputs o JOIN attempts a ON a.trial_id = t.id AND a.stage = o.stage AND a.id <> o.attempt_id AND a.failure_kind = 'ok'
        WHERE o.key = k.key AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = a.id AND r.short)) AS repeated,
    coalesce(f.number, 0)::integer AS failed_in, coalesce(f.state, '')::text AS failed_state, coalesce(f.failure_kind, '')::text AS failed_kind, coalesce(f.message, '')::text AS failed_message
FROM trials t CROSS JOIN LATERAL (
    SELECT n AS position, t.stage_keys[n]::text AS key FROM generate_subscripts(t.stage_keys, 1) n
) k
LEFT JOIN LATERAL (
    SELECT e.number, e.state, e.failure_kind, e.message FROM trials e
    WHERE e.sweep_id = t.sweep_id AND e.failed_stage = k.key AND e.failed_stage <> '' ORDER BY e.number LIMIT 1
) f ON true
WHERE t.sweep_id = (SELECT @sweep_id::uuid) AND t.number = @number
ORDER BY k.position;

-- name: BlockedTrials :one
-- Open trials that wait for a stage which another trial runs.
SELECT count(*)::integer FROM trials t
WHERE t.sweep_id = @sweep_id AND t.state = 'waiting' AND t.stage_keys <> '{}'
    AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.trial_id = t.id AND r.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.state IN ('placed', 'running'));

-- name: StageInputs :many
-- The attempts that wrote the outputs of stages, where, and whether the store has them. known and (SELECT @x): as in StageStates.
SELECT o.key, o.attempt_id, o.host_id, o.stored::boolean AS stored, (o.seen_at > now() - (SELECT @silent::interval))::boolean AS known
FROM shared_outputs o WHERE o.key = ANY ((SELECT @keys::text[])::text[]);

-- name: PutStageOutput :execrows
-- A second output of a stage replaces the first only once that is lost: later stages read the first.
INSERT INTO stage_outputs AS o (key, stage, attempt_id) VALUES (@key, @stage, @attempt_id)
ON CONFLICT (key) DO UPDATE SET attempt_id = excluded.attempt_id, made_at = now()
WHERE NOT EXISTS (SELECT 1 FROM shared_outputs u WHERE u.key = o.key AND u.seen_at > now() - @silent::interval);

-- name: DropLaterOutputs :exec
-- A stage that was lost ran again: what later stages wrote on another host has no host any more that has all inputs of a
-- trial, unless the store has it.
DELETE FROM stage_outputs l USING attempts n, trials t, attempts a
WHERE n.id = @attempt_id AND t.stage_keys @> ARRAY[@key::text] AND l.key = ANY (t.stage_keys[array_position(t.stage_keys, @key::text) + 1:])
    AND a.id = l.attempt_id AND a.host_id <> n.host_id AND NOT (a.files_state = 'stored' AND a.files_left_out = 0);

-- name: DropStageOutput :exec
-- Forgets an output that is whole nowhere any more.
DELETE FROM stage_outputs WHERE attempt_id = @attempt_id;

-- name: HeldOutputs :many
-- Which of these attempts wrote what an unfinished trial needs, or a container that has not ended for certain.
SELECT DISTINCT attempt_id FROM held_outputs WHERE attempt_id = ANY (@attempt_ids::uuid[]);

-- name: PausedTrials :many
-- Which of these workflows are of trials that get no place now, however much room there is: of sweeps that are paused, or that
-- run as many trials as max_parallel lets them. Their ids are "sweep-", the sweep's id, "/trial-" and the number.
SELECT w.id::text FROM unnest(@workflow_ids::text[]) AS w (id) JOIN sweeps s ON 'sweep-' || s.id = split_part(w.id, '/', 1)
WHERE s.state = 'paused' OR s.max_parallel > 0
    AND (SELECT count(*) FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released') >= s.max_parallel
    AND NOT EXISTS (SELECT 1 FROM trials t JOIN attempts a ON a.trial_id = t.id
        WHERE t.sweep_id = s.id AND 'trial-' || t.number = split_part(w.id, '/', 2) AND a.state IN ('placed', 'running'));

-- name: StagesKnown :many
SELECT o.key FROM shared_outputs o WHERE o.key = ANY (@keys::text[]) AND o.seen_at > now() - @silent::interval;

-- name: FirstFits :many
-- The first fits of the succeeded trials of a sweep, where these were followed by others.
SELECT t.number, t.params, a.first_fit, greatest(coalesce(a.finished_at - a.started_at, '0'), '0')::interval AS took
FROM trials t CROSS JOIN LATERAL (
    SELECT e.first_fit, e.started_at, e.finished_at FROM attempts e
    WHERE e.trial_id = t.id AND e.failure_kind = 'ok' AND e.stage = 'main' ORDER BY e.number DESC LIMIT 1
) a
WHERE t.sweep_id = @sweep_id AND t.state = 'succeeded' AND a.first_fit IS NOT NULL
ORDER BY t.number;

-- name: StageUse :many
-- What the succeeded trials of a sweep had of each stage, in the order in which they run.
WITH used AS (
    SELECT o.stage, min(array_position(t.stage_keys, o.key)) AS position, count(*) AS trials, w.sweep_id = @sweep_id AS own,
        greatest(coalesce(a.finished_at - a.started_at, '0'), '0') AS took
    FROM trials t JOIN stage_outputs o ON o.key = ANY (t.stage_keys) JOIN attempts a ON a.id = o.attempt_id JOIN trials w ON w.id = a.trial_id
    WHERE t.sweep_id = @sweep_id AND t.state = 'succeeded'
    GROUP BY o.stage, o.key, a.id, w.sweep_id
)
SELECT u.stage AS name, sum(u.trials)::integer AS trials, (count(*) FILTER (WHERE u.own))::integer AS runs,
    coalesce(sum(u.took) FILTER (WHERE u.own), '0')::interval AS spent, sum(u.trials * u.took)::interval AS alone
FROM used u GROUP BY u.stage ORDER BY min(u.position);

-- name: ListEndedTrials :many
SELECT number, state, failure_kind AS kind, value, message FROM trials
WHERE sweep_id = @sweep_id AND number = ANY (@numbers::integer[]) AND finished_at IS NOT NULL
ORDER BY number;

-- name: ListFailures :many
-- The most frequent messages: of more than a thousand, the rest say hardly more.
SELECT state, failure_kind AS kind, message, count(*)::integer AS trials, min(number)::integer AS first FROM trials
WHERE sweep_id = @sweep_id AND state IN ('failed', 'infeasible')
GROUP BY state, failure_kind, message
ORDER BY count(*) DESC, min(number)
LIMIT 1000;

-- name: ListTrials :many
-- The files of a trial belong to its last attempt: an earlier one failed, and may have been on another host.
SELECT sqlc.embed(t), (SELECT count(*) FROM attempts a WHERE a.trial_id = t.id)::integer AS attempts,
    coalesce(r.reasons, '[]')::jsonb AS reasons, coalesce(k.id::text, '')::text AS kept_host_id, coalesce(k.name, '')::text AS kept_host,
    coalesce(r.kept_device_id, '')::text AS kept_device_id, coalesce(r.kept_since, 'epoch')::timestamptz AS kept_since,
    coalesce((SELECT a.outputs_removed_why FROM attempts a WHERE a.trial_id = t.id
        ORDER BY a.number DESC LIMIT 1), '')::text AS outputs_removed
FROM trials t JOIN sweeps s ON s.id = t.sweep_id
LEFT JOIN LATERAL (
    SELECT w.* FROM placement_requests w WHERE w.trial_id = t.id AND w.state = 'waiting' ORDER BY w.requested_at DESC LIMIT 1
) r ON true
LEFT JOIN hosts k ON k.id = r.kept_host_id
WHERE t.sweep_id = @sweep_id AND s.deleted_at IS NULL AND t.number > @after_number
  AND (cardinality(@states::text[]) = 0 OR t.state = ANY (@states::text[]))
ORDER BY t.number
LIMIT @max_rows;

-- name: ListedTrials :many
-- Trials as in ListTrials, with the listed values of their newest attempt. It looks up only the newest point
-- of the objective's metric, in the primary key; without an objective, of the first metric by name. For an
-- array made here the planner expects few rows and looks each up by its id; for @ids itself it reads all
-- trials.
SELECT sqlc.embed(t), (SELECT count(*) FROM attempts n WHERE n.trial_id = t.id)::integer AS attempts,
    coalesce(r.reasons, '[]')::jsonb AS reasons, (r.requested_at IS NOT NULL)::boolean AS waits,
    coalesce(k.id::text, '')::text AS kept_host_id, coalesce(k.name, '')::text AS kept_host, coalesce(r.kept_device_id, '')::text AS kept_device_id,
    coalesce(r.kept_since, 'epoch')::timestamptz AS kept_since,
    coalesce(r.requested_at, 'epoch')::timestamptz AS waiting_since, coalesce(a.outputs_removed_why, '')::text AS outputs_removed,
    coalesce(a.id::text, '')::text AS attempt_id, coalesce(a.number, 0)::integer AS attempt_number, coalesce(a.stage, '')::text AS stage,
    coalesce(a.state, '')::text AS attempt_state, coalesce(a.purpose, '')::text AS purpose, coalesce(a.host_id::text, '')::text AS host_id, coalesce(h.name, '')::text AS host_name,
    coalesce(a.device_id, '')::text AS device_id, coalesce(a.memory_bytes, 0)::bigint AS memory_bytes,
    coalesce(a.device_bytes, 0)::bigint AS device_bytes, coalesce(a.memory_peak_bytes, 0)::bigint AS memory_peak_bytes,
    coalesce(a.device_peak_bytes, 0)::bigint AS device_peak_bytes,
    coalesce(m.name, '')::text AS metric_name, coalesce(m.step, 0)::bigint AS metric_step, coalesce(m.value, 0)::double precision AS metric_value,
    coalesce(m.status, '')::text AS metric_status, coalesce(m.final, false)::boolean AS metric_final, coalesce(m.at, 'epoch')::timestamptz AS metric_at
FROM trials t JOIN sweeps s ON s.id = t.sweep_id
LEFT JOIN LATERAL (
    SELECT w.* FROM placement_requests w WHERE w.trial_id = t.id AND w.state = 'waiting' ORDER BY w.requested_at DESC LIMIT 1
) r ON true
LEFT JOIN hosts k ON k.id = r.kept_host_id
LEFT JOIN LATERAL (SELECT * FROM attempts l WHERE l.trial_id = t.id ORDER BY l.number DESC LIMIT 1) a ON true
LEFT JOIN hosts h ON h.id = a.host_id
LEFT JOIN LATERAL (
    SELECT p.* FROM metrics p
    WHERE p.attempt_id = a.id AND a.stage = 'main' -- what a stage reports is not the trial's
        AND p.name = coalesce(nullif(@metric::text, ''), (SELECT min(f.name) FROM metrics f WHERE f.attempt_id = a.id))
    ORDER BY p.step DESC LIMIT 1
) m ON true
WHERE t.id = ANY (ARRAY(SELECT unnest(@ids::uuid[])));

-- name: SetTrialNote :many
UPDATE trials SET note = @note
WHERE sweep_id = @sweep_id AND number = @number AND note = coalesce(sqlc.narg(was)::text, note) RETURNING id;

-- name: NewestMetrics :many
-- The newest point of each of the named metrics of each attempt: one look-up in the primary key each. What a stage reports
-- is not the trial's.
SELECT a.id::text AS attempt_id, p.name, p.step, p.value, p.status, p.final, p.at
FROM unnest(@attempt_ids::uuid[]) a (id) CROSS JOIN unnest(@names::text[]) n (name)
CROSS JOIN LATERAL (
    SELECT * FROM metrics m
    WHERE m.attempt_id = a.id AND m.name = n.name AND (SELECT l.stage FROM attempts l WHERE l.id = a.id) = 'main'
    ORDER BY m.step DESC LIMIT 1
) p;

-- name: ObjectiveMetric :one
SELECT metric FROM sweeps WHERE id = @id;

-- name: FindTrialParams :many
-- Returns which of the keys are a trial's values; the column stores them as the text that
-- Assignment.Key gives.
SELECT params::text FROM trials
WHERE sweep_id = @sweep_id AND md5(params::text)::uuid = ANY (ARRAY(SELECT md5(k)::uuid FROM unnest(@keys::text[]) k));

-- name: ListObservations :many
-- What a search learns from: trials from a number on; of pruned ones the last value that was judged.
SELECT t.id, t.number, t.params, t.state, t.failure_kind AS kind, coalesce(t.value, r.value) AS value, coalesce(r.step, 0)::bigint AS step, t.results
FROM trials t LEFT JOIN LATERAL (
    SELECT j.value, j.step FROM rungs j WHERE t.state = 'pruned' AND j.trial_id = t.id ORDER BY j.rung DESC LIMIT 1
) r ON true
WHERE t.sweep_id = @sweep_id AND t.number >= @from_number ORDER BY t.number;

-- name: OldestOfEnded :many
-- The first of the newest ended trials; none when there are fewer.
SELECT number FROM trials WHERE sweep_id = @sweep_id AND finished_at IS NOT NULL ORDER BY number DESC LIMIT 1 OFFSET @newer;

-- name: InsightTrials :many
SELECT number, params, state, value, results, coalesce(origin ->> 'by', '')::text AS by, finished_at FROM trials
WHERE sweep_id = @sweep_id AND number >= @from_number ORDER BY number;

-- name: ListTrialParams :many
SELECT params::text FROM trials WHERE sweep_id = @sweep_id;

-- name: LastTrial :many
-- Numbers have no gaps, so its number is also how many there are. None when there are none.
SELECT number, params FROM trials WHERE sweep_id = @sweep_id ORDER BY number DESC LIMIT 1;

-- name: SetTrialState :one
-- The first terminal state wins; an ended trial no longer changes. The end withdraws the trial's waiting
-- request and fences its running attempt, for its host to stop: nothing runs for an ended trial.
WITH changed AS (
    UPDATE trials
    SET state = @state, failure_kind = @failure_kind, message = @message, value = @value, failed_stage = @failed_stage,
        results = CASE WHEN @state = 'succeeded' THEN coalesce((SELECT a.results FROM attempts a WHERE a.trial_id = @id ORDER BY a.number DESC LIMIT 1), '{}') ELSE '{}' END,
        started_at = CASE WHEN @state = 'running' THEN coalesce(started_at, now()) ELSE started_at END,
        finished_at = CASE WHEN @state IN ('succeeded', 'failed', 'infeasible', 'canceled', 'pruned') THEN now() END
    WHERE trials.id = @id AND finished_at IS NULL
    RETURNING trials.id, trials.finished_at
), withdrawn AS (
    UPDATE placement_requests r SET state = 'withdrawn', decided_at = now(), reasons = '[]'
    FROM changed c WHERE r.trial_id = c.id AND c.finished_at IS NOT NULL AND r.state = 'waiting'
), fenced AS (
    UPDATE attempts a
    SET state = 'abandoned', token = nextval('lease_tokens'), failure_kind = 'canceled',
        message = 'its trial ended without it', finished_at = now()
    FROM changed c WHERE a.trial_id = c.id AND c.finished_at IS NOT NULL AND a.state IN ('placed', 'running')
)
SELECT count(*) FROM changed;

-- name: ListSilentTrials :many
-- Open trials without a waiting request or a running attempt for the given time, in the order of their sweeps
-- and numbers.
SELECT t.id, t.sweep_id, t.number FROM trials t JOIN sweeps s ON s.id = t.sweep_id
WHERE t.finished_at IS NULL AND s.finished_at IS NULL AND (t.sweep_id, t.number) > (@after_sweep, @after_number::integer)
  AND t.created_at < now() - @silent::interval
  AND NOT EXISTS (SELECT FROM placement_requests r WHERE r.trial_id = t.id
      AND (r.state = 'waiting' OR r.decided_at > now() - @silent::interval))
  AND NOT EXISTS (SELECT FROM attempts a WHERE a.trial_id = t.id
      AND (a.state IN ('placed', 'running') OR a.finished_at > now() - @silent::interval))
ORDER BY t.sweep_id, t.number
LIMIT @max_rows;

-- name: TrialTimes :many
-- For each sweep. Reads trials by number from the newest on until enough have ended. It skips open trials, a
-- few hundred at most, and canceled ones. The time excludes the waits between a trial's attempts.
SELECT s.id::uuid AS sweep_id, count(d.took)::integer AS ended, coalesce(avg(d.took), '0')::interval AS mean,
    coalesce(percentile_cont(0.25) WITHIN GROUP (ORDER BY d.took), '0')::interval AS lower,
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY d.took), '0')::interval AS median,
    coalesce(percentile_cont(0.75) WITHIN GROUP (ORDER BY d.took), '0')::interval AS upper,
    coalesce(now() - (
        SELECT min(a.placed_at) FROM trials r JOIN attempts a ON a.trial_id = r.id AND a.state IN ('placed', 'running')
        WHERE r.sweep_id = s.id AND r.state = 'running'
    ), '0')::interval AS oldest
FROM unnest(@sweep_ids::uuid[]) AS s (id) LEFT JOIN LATERAL (
    SELECT greatest(interval '0', t.finished_at - t.started_at - coalesce((
        SELECT sum(greatest(interval '0', w.placed_at - w.ended_before)) FROM (
            SELECT a.placed_at, lag(a.finished_at) OVER (ORDER BY a.placed_at) AS ended_before FROM attempts a WHERE a.trial_id = t.id
        ) w
    ), interval '0')) AS took FROM trials t
    WHERE t.sweep_id = s.id AND t.finished_at IS NOT NULL AND t.started_at IS NOT NULL AND t.state <> 'canceled'
    ORDER BY t.number DESC LIMIT @max_trials
) d ON true
GROUP BY s.id;

-- name: ExportTrials :many
-- Trials by number, each with its newest attempt that counts: the result of a short probe is thrown away.
SELECT sqlc.embed(t), (SELECT count(*) FROM attempts n WHERE n.trial_id = t.id)::integer AS attempts,
    coalesce(a.id::text, '')::text AS attempt_id, coalesce(a.number, 0)::integer AS attempt_number, coalesce(a.host_id::text, '')::text AS host_id,
    coalesce(h.name, '')::text AS host_name, coalesce(a.device_id, '')::text AS device_id, a.exit_code,
    coalesce(a.memory_bytes, 0)::bigint AS memory_bytes, coalesce(a.device_bytes, 0)::bigint AS device_bytes,
    coalesce(a.memory_peak_bytes, 0)::bigint AS memory_peak_bytes, coalesce(a.device_peak_bytes, 0)::bigint AS device_peak_bytes,
    a.datasets
FROM trials t JOIN sweeps s ON s.id = t.sweep_id
LEFT JOIN LATERAL (
    SELECT l.* FROM attempts l
    WHERE l.trial_id = t.id AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = l.id AND r.short)
    ORDER BY l.number DESC LIMIT 1
) a ON true
LEFT JOIN hosts h ON h.id = a.host_id
WHERE t.sweep_id = @sweep_id AND s.deleted_at IS NULL AND t.number > @after_number
    AND (cardinality(@states::text[]) = 0 OR t.state = ANY (@states::text[]))
    AND (sqlc.narg(value_min)::double precision IS NULL OR t.value >= sqlc.narg(value_min)::double precision)
    AND (sqlc.narg(value_max)::double precision IS NULL OR t.value <= sqlc.narg(value_max)::double precision)
    AND (@stage::text = '' OR EXISTS (SELECT 1 FROM unnest(t.stage_keys) AS k (key) WHERE starts_with(k.key, @stage::text)))
ORDER BY t.number
LIMIT @max_rows;

-- name: CopyPriors :exec
-- The newest trials of a sweep that teach a search, for another one.
INSERT INTO priors (sweep_id, earlier, number, params, state, loss, step)
SELECT @sweep_id, @earlier::integer, t.number, t.params, t.state,
    coalesce(t.value, r.value) * CASE WHEN s.minimizes THEN 1 ELSE -1 END, coalesce(r.step, 0)
FROM trials t JOIN sweeps s ON s.id = t.sweep_id LEFT JOIN LATERAL (
    SELECT j.value, j.step FROM rungs j WHERE j.trial_id = t.id ORDER BY j.rung DESC LIMIT 1
) r ON t.state = 'pruned'
WHERE t.sweep_id = @from_sweep AND (t.state IN ('succeeded', 'pruned', 'infeasible') AND (t.state <> 'succeeded' OR t.value IS NOT NULL) OR t.failure_kind = 'not_finite')
ORDER BY t.number DESC LIMIT 1000;

-- name: ClonePriors :exec
INSERT INTO priors (sweep_id, earlier, number, params, state, loss, step)
SELECT @sweep_id::uuid, earlier, number, params, state, loss, step FROM priors p WHERE p.sweep_id = @of_sweep;

-- name: ListPriors :many
SELECT earlier, number, params, state, loss AS value, step FROM priors WHERE sweep_id = @sweep_id ORDER BY earlier, number;

-- name: ListLessons :many
-- The newest trials of a sweep that teach a search a value.
SELECT t.params FROM trials t
WHERE t.sweep_id = @sweep_id AND t.state IN ('succeeded', 'pruned') AND (t.state = 'pruned' OR t.value IS NOT NULL)
ORDER BY t.number DESC LIMIT 1000;
