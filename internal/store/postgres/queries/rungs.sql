-- name: RungOwner :many
-- None: the attempt is fenced.
SELECT t.id AS trial_id, t.sweep_id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.id = @attempt_id AND a.token = @token;

-- name: LockRung :exec
-- Until the transaction ends: trials that come to a rung at once see each other.
SELECT pg_advisory_xact_lock(hashtextextended(@sweep_id::text || '/' || @rung::bigint, 0));

-- name: ListRungs :many
SELECT rung, step, value, stop, why, at FROM rungs WHERE trial_id = @trial_id ORDER BY rung;

-- name: RungAnswer :many
SELECT stop, why FROM rungs WHERE trial_id = @trial_id AND rung = @rung;

-- name: RungValues :many
SELECT r.value, (t.state = 'succeeded')::boolean AS succeeded FROM rungs r JOIN trials t ON t.id = r.trial_id
WHERE r.sweep_id = @sweep_id AND r.rung = @rung AND r.trial_id <> @trial_id;

-- name: InsertRung :exec
INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, ended, why) VALUES (@trial_id, @rung, @sweep_id, @step, @value, @stop, @ended, @why);

-- name: InsightRungs :many
-- What became of a sweep's trials at its first rungs; the best value is the lowest or the highest. NaN = there is none.
-- The limit has the planner look up each trial's rungs in the primary key: other sweeps may have millions.
SELECT r.rung, min(r.step)::bigint AS step, max(r.step)::bigint AS last_step, count(*)::integer AS trials,
    (count(*) FILTER (WHERE r.stop))::integer AS stopped,
    coalesce(CASE WHEN @maximize::boolean THEN max(r.value) ELSE min(r.value) END, 'NaN')::double precision AS best,
    coalesce(CASE WHEN @maximize THEN max(r.value) FILTER (WHERE r.stop) ELSE min(r.value) FILTER (WHERE r.stop) END, 'NaN')::double precision AS cut
FROM trials t CROSS JOIN LATERAL (
    SELECT * FROM rungs j WHERE j.trial_id = t.id AND NOT j.ended AND j.rung < @max_rungs::bigint ORDER BY j.rung LIMIT @max_rungs
) r
WHERE t.sweep_id = @sweep_id AND t.number >= @from_number
GROUP BY r.rung ORDER BY r.rung;
