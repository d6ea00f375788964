-- name: LoadDevices :many
-- The shapes with a lease on each GPU, with the templates of their sweeps: image and command. young = all are
-- younger than the given age, on hosts that answer.
SELECT l.device_id::text AS device_id, l.shape_key, s.template, bool_and(l.state = 'held' AND l.created_at > now() - @young::interval)::boolean AS young
FROM leases l JOIN sweeps s ON s.id = l.sweep_id
WHERE l.device_id IS NOT NULL AND l.state <> 'released'
GROUP BY 1, 2, 3
ORDER BY 1, 2;

-- name: SweepsAhead :many
-- What sweeps have still to ask a place for, as far as that is known, and their templates.
SELECT s.id, greatest(s.planned - coalesce((SELECT max(number) FROM trials t WHERE t.sweep_id = s.id), 0), 0)::integer AS trials_left,
    s.template, s.trial_limit
FROM sweeps s WHERE s.id = ANY (@ids::uuid[]);

-- name: ListPaces :many
-- Skips old measurements: their conditions, such as other work on the host, may be gone.
SELECT place, mix, shape_key, mode, at_once, samples, failed, mean, variance, updated_at
FROM paces WHERE shape_key = ANY (@shape_keys::text[]) AND updated_at > now() - @kept::interval
ORDER BY shape_key, mix, place, mode, at_once;

-- name: CompanyOf :one
-- The mean number of attempts on the GPU over the attempt's run, itself included, and the mix of the newest
-- neighbour, which contains all that ran beside it until then. Returns no row for a run that teaches nothing:
-- a stopped one, a short probe, a run continued from a checkpoint, or one placed without a mix. Nor for an
-- end that neighbours do not cause, such as a wrong configuration, out of memory at the attempt's own bound,
-- or the end of an MPS server, which ends all its clients.
SELECT (a.failure_kind <> 'ok')::boolean AS failed, d.model, d.profile, h.cpu_milli, (SELECT count(*) FROM devices x WHERE x.host_id = h.id AND x.lost_at IS NULL)::integer AS devices,
    a.device_class, a.mix_own, extract(epoch FROM a.finished_at - a.started_at)::double precision AS seconds, beside.seconds::double precision AS company_seconds,
    beside.mix::text AS mix
FROM attempts a JOIN devices d ON d.id = a.device_id JOIN hosts h ON h.id = a.host_id,
    LATERAL (
        SELECT sum(extract(epoch FROM least(coalesce(o.finished_at, a.finished_at), a.finished_at) - greatest(o.started_at, a.started_at))) AS seconds,
            (array_agg(o.mix ORDER BY o.placed_at DESC))[1] AS mix
        FROM attempts o
        WHERE o.device_id = a.device_id AND (o.finished_at > a.started_at OR o.finished_at IS NULL AND o.state IN ('placed', 'running'))
            AND o.started_at < a.finished_at) beside
WHERE a.id = @id AND a.number = 1 AND (a.failure_kind IN ('ok', 'timed_out', 'crashed', 'killed') OR a.failure_kind = 'device_oom' AND a.device_class NOT LIKE '%(MPS)')
    AND NOT EXISTS (SELECT 1 FROM placement_requests r WHERE r.attempt_id = a.id AND r.short) AND a.mix_own <> '' AND a.started_at < a.finished_at AND a.unseen_ns = 0;

-- name: AddPace :exec
-- A new attempt has a weight of at least one part in PaceMemory. A failed attempt counts only as a failure,
-- without a sample; each good end takes the same part off the failures. Old values start again.
INSERT INTO paces AS p (place, mix, shape_key, mode, at_once, samples, failed, mean, variance)
VALUES (@place, @mix, @shape_key, @mode, @at_once, @samples, @failed, @seconds::double precision, 0)
ON CONFLICT (shape_key, mix, place, mode, at_once) DO UPDATE SET
    samples = CASE WHEN p.updated_at > now() - @kept::interval THEN p.samples ELSE 0 END + excluded.samples,
    failed = CASE WHEN p.updated_at > now() - @kept::interval THEN p.failed - excluded.samples * ceil(p.failed::numeric / @memory::integer)::integer ELSE 0 END + excluded.failed,
    mean = CASE WHEN p.updated_at > now() - @kept::interval
        THEN p.mean + excluded.samples * (excluded.mean - p.mean) / least(p.samples + 1, @memory::integer) ELSE excluded.mean END,
    variance = CASE WHEN p.updated_at > now() - @kept::interval
        THEN p.variance + excluded.samples
            * ((excluded.mean - p.mean) ^ 2 * (1 - 1.0 / least(p.samples + 1, @memory::integer)) - p.variance) / least(p.samples + 1, @memory::integer)
        ELSE 0 END,
    updated_at = now();

-- name: DeleteOldPaces :execrows
DELETE FROM paces WHERE ctid IN (SELECT ctid FROM paces WHERE updated_at <= now() - @kept::interval LIMIT @max_rows);

-- name: ClearAdvice :exec
WITH locked AS (
    SELECT id FROM devices WHERE advice::text <> '{}' ORDER BY id FOR NO KEY UPDATE
)
UPDATE devices d SET advice = '{}' FROM locked l WHERE d.id = l.id;

-- name: StoreAdvice :exec
WITH locked AS (
    SELECT d.id, u.advice FROM devices d JOIN (SELECT unnest(@ids::text[]) AS id, unnest(@advice::json[]) AS advice) u ON u.id = d.id
    ORDER BY d.id FOR NO KEY UPDATE OF d
)
UPDATE devices d SET advice = l.advice FROM locked l WHERE d.id = l.id;
