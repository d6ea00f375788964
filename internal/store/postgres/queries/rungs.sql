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
INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why) VALUES (@trial_id, @rung, @sweep_id, @step, @value, @stop, @why);
