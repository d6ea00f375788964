-- name: InsertPlacementRequest :execrows
-- A free retry waits longer each time, from 2 s to a minute, because a host's problem rarely ends at once.
WITH pause AS (
    SELECT CASE WHEN count(*) < 2 THEN 0 ELSE least(60, 2 ^ least(count(*) - 1, 6)) END AS seconds
    FROM attempts WHERE trial_id = @trial_id AND failure_kind IN ('infra', 'device_busy')
)
INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key,
    memory_bytes, cpu_milli, device_bytes, contexts, exclusive, exclusive_device, last_oom, expected_ns, short, not_before, reasons)
SELECT @attempt_id::uuid, @sweep_id::uuid, @trial_id::uuid, @workflow_id::text, @number::integer, @stage::text, @purpose::text, @shape_key::text,
    @memory_bytes::bigint, @cpu_milli::bigint, @device_bytes::bigint, @contexts::integer, @exclusive::boolean, @exclusive_device::boolean, sqlc.narg(last_oom)::json, @expected_ns::bigint, @short::boolean,
    now() + pause.seconds * interval '1 second',
    CASE WHEN pause.seconds = 0 THEN '[]' ELSE jsonb_build_array(jsonb_build_object('reason',
        'tried again in ' || pause.seconds || ' s: earlier attempts failed through no fault of the trial')) END
FROM pause
ON CONFLICT (attempt_id) DO NOTHING;

-- name: ResizeRequest :execrows
UPDATE placement_requests
SET memory_bytes = @memory_bytes, cpu_milli = @cpu_milli, device_bytes = @device_bytes, contexts = @contexts, exclusive = @exclusive,
    exclusive_device = @exclusive_device, expected_ns = @expected_ns, purpose = @purpose, short = @short
WHERE attempt_id = @attempt_id AND state = 'waiting';

-- name: GetPlacementRequest :one
SELECT * FROM placement_requests WHERE attempt_id = @attempt_id;

-- name: ListWaitingRequests :many
-- Requests that may be placed now, of sweeps that take trials: the oldest requests that each sweep offers
-- (sweep_offers). If these are too many, each sweep's oldest come first. A trial has one open attempt at
-- most, so a request whose trial has one waits for its end. The time before its sweep was resumed, or its
-- max_parallel raised, is no wait: else all requests of the sweep would be overdue at once, and hosts would
-- be drained for them. away: the trial is to run an attempt again that counts as away (CountRunningBySweep).
-- oom: the newest out-of-memory of the trial. apart: a fault on a GPU that is shared by MPS ends all of its
-- clients, and its origin is unknown. Each of them runs again without neighbours there. A sweep whose program
-- has faulted by itself (device_fault) shares no GPU either, until enough of its trials have had clean runs
-- on GPUs placed since; these are times of the database (R9). checkpoint_host alone has the newest
-- checkpoint: it is not stored, or not all of it. A short probe goes on from none.
WITH offered AS MATERIALIZED (
    SELECT r.attempt_id FROM sweep_offers o CROSS JOIN LATERAL (
        SELECT w.attempt_id, w.requested_at, row_number() OVER (ORDER BY w.requested_at, w.attempt_id) AS nth
        FROM placement_requests w WHERE w.sweep_id = o.sweep_id AND w.state = 'waiting' AND w.not_before <= now()
        ORDER BY w.requested_at, w.attempt_id LIMIT o.offer) r
    ORDER BY r.nth, r.requested_at, r.attempt_id LIMIT @max_rows
), faulted AS MATERIALIZED (
    SELECT t.sweep_id, max(c.placed_at) AS at
    FROM attempts c JOIN trials t ON t.id = c.trial_id
    WHERE c.device_fault
    GROUP BY t.sweep_id
), faulty AS MATERIALIZED (
    SELECT f.sweep_id FROM faulted f
    WHERE f.sweep_id IN (SELECT sweep_id FROM placement_requests WHERE state = 'waiting') AND (
        SELECT count(*) FROM (
            SELECT 1 FROM trials t
            WHERE t.sweep_id = f.sweep_id AND t.state = 'succeeded' AND t.finished_at > f.at
                AND EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.failure_kind = 'ok' AND a.device_id IS NOT NULL AND a.placed_at > f.at)
            LIMIT @clean_runs::integer) clean) < @clean_runs::integer
)
SELECT r.attempt_id, r.sweep_id, r.shape_key, r.reasons::text AS reasons, r.kept_host_id, r.kept_device_id, t.number AS trial_number, r.stage, s.datasets,
    coalesce(st.stage -> 'resources', s.resources)::json AS resources, coalesce(st.stage ->> 'image_digest', s.image_digest)::text AS image_digest,
    ARRAY(SELECT DISTINCT k.key FROM jsonb_array_elements_text(s.secret_names) m (name) JOIN secrets k ON k.name = m.name ORDER BY k.key)::text[] AS secret_keys,
    (t.stage_keys <> '{}')::boolean AS staged, coalesce(r.last_oom, 'null')::json AS oom, s.max_parallel, s.state AS sweep_state,
    (now() - greatest(r.requested_at, s.resumed_at))::interval AS waited,
    coalesce(open.number, 0)::integer AS open_number, coalesce(h.name, '')::text AS open_host,
    ARRAY(SELECT f.host_id FROM attempts f WHERE r.number > 1 AND f.trial_id = r.trial_id AND f.failure_kind = 'infra')::uuid[] AS failed_hosts,
    (r.number > 1 AND EXISTS (
        SELECT 1 FROM attempts e JOIN leases l ON l.attempt_id = e.id JOIN hosts o ON o.id = l.host_id
        WHERE e.trial_id = r.trial_id AND e.number < r.number AND e.state = 'abandoned' AND NOT e.refused AND l.state <> 'released'
            AND (o.problem <> '' OR now() - o.last_seen_at > @lost_after::interval)
            AND NOT EXISTS (SELECT 1 FROM attempts n WHERE n.trial_id = e.trial_id AND n.number > e.number)))::boolean AS away,
    (r.sweep_id IN (SELECT sweep_id FROM faulty) OR r.number > 1 AND EXISTS (
        SELECT 1 FROM attempts n WHERE n.trial_id = r.trial_id AND (n.failure_kind = 'neighbour_fault' OR n.device_fault)))::boolean AS apart,
    coalesce((SELECT CASE WHEN k.checkpoint_problem <> '' OR NOT EXISTS (
            SELECT 1 FROM checkpoints c WHERE c.attempt_id = k.id AND c.stored_at IS NOT NULL) THEN k.host_id::text END
        FROM attempts k
        WHERE r.number > 1 AND NOT r.short AND k.trial_id = r.trial_id AND k.stage = r.stage AND k.checkpoint_left
        ORDER BY k.number DESC LIMIT 1), '')::text AS checkpoint_host
FROM placement_requests r JOIN sweeps s ON s.id = r.sweep_id JOIN trials t ON t.id = r.trial_id
LEFT JOIN attempts open ON open.trial_id = r.trial_id AND open.state IN ('placed', 'running')
LEFT JOIN hosts h ON h.id = open.host_id
LEFT JOIN LATERAL ( -- a spec is parsed for stages alone
    SELECT e AS stage FROM json_array_elements(CASE WHEN r.stage <> 'main' THEN s.spec -> 'stages' END) e WHERE e ->> 'name' = r.stage) st ON true
WHERE r.attempt_id = ANY (ARRAY(SELECT attempt_id FROM offered)) AND r.state = 'waiting'
ORDER BY greatest(r.requested_at, s.resumed_at), r.attempt_id;

-- name: ListWaitingInputs :many
-- Of requests of trials with stages: how many earlier outputs they read, the hosts that have all of these, and the hosts
-- that can fetch from the store what they lack. Trials that read the same are looked at once. A try that runs a stage again
-- also reads the output of the first run, to compare, and only on the host that wrote it. (SELECT @x): as in StageStates.
WITH asked AS MATERIALIZED (
    SELECT r.attempt_id, r.stage, n.inputs, t.stage_keys[1:n.inputs] AS keys, CASE WHEN r.stage <> 'main' AND s.spec #>> '{labels,berth/try}' = 'true' THEN t.stage_keys[n.inputs + 1] END AS again
    FROM placement_requests r JOIN trials t ON t.id = r.trial_id JOIN sweeps s ON s.id = r.sweep_id CROSS JOIN LATERAL (
        SELECT CASE WHEN r.stage = 'main' THEN cardinality(t.stage_keys) ELSE (
            SELECT e.position - 1 FROM json_array_elements(s.spec -> 'stages') WITH ORDINALITY AS e (stage, position) WHERE e.stage ->> 'name' = r.stage) END AS inputs
    ) n
    WHERE r.attempt_id = ANY ((SELECT @attempt_ids::uuid[])::uuid[])
), places AS MATERIALIZED (
    SELECT d.keys, d.again, f.first,
        ARRAY(SELECT h.id FROM hosts h WHERE (d.inputs > 0 OR h.id = f.first) AND coalesce(h.id = f.first, true) AND h.removed_at IS NULL AND d.inputs = (
            SELECT count(*) FROM shared_outputs o WHERE o.key = ANY (d.keys) AND o.there AND o.host_id = h.id))::uuid[] AS hosts,
        ARRAY(SELECT h.id FROM hosts h WHERE d.inputs > 0 AND coalesce(h.id = f.first, true) AND h.removed_at IS NULL AND h.stores_files AND d.inputs = (
            SELECT count(*) FROM shared_outputs o WHERE o.key = ANY (d.keys) AND (o.stored OR o.there AND o.host_id = h.id)))::uuid[] AS fetching
    FROM (SELECT DISTINCT keys, again, inputs FROM asked) d LEFT JOIN LATERAL (
        SELECT o.host_id AS first FROM shared_outputs o
        WHERE o.key = d.again AND o.there AND o.last_seen_at > now() - (SELECT @silent::interval)
    ) f ON true
)
SELECT a.attempt_id, (a.stage <> 'main')::boolean AS shared, (a.inputs + (p.first IS NOT NULL)::integer)::integer AS inputs,
    p.hosts::uuid[] AS hosts, p.fetching::uuid[] AS fetching
FROM asked a JOIN places p ON p.keys = a.keys AND p.again IS NOT DISTINCT FROM a.again;

-- name: HoldRequests :exec
-- Says why requests wait that no sweep offers to the placer: their sweep takes no trials, or its earlier ones go first.
WITH held AS (
    SELECT r.attempt_id, '[{"dimension": "sweep", "needed": 0, "free": 0, "reason": "the sweep takes no new trials now"}]'::jsonb AS reasons
    FROM sweeps s CROSS JOIN LATERAL (
        SELECT w.attempt_id FROM placement_requests w WHERE w.sweep_id = s.id AND w.state = 'waiting'
            AND w.reasons <> '[{"dimension": "sweep", "needed": 0, "free": 0, "reason": "the sweep takes no new trials now"}]' OFFSET 0) r
    WHERE s.state IN ('paused', 'stopping', 'canceling')
    UNION ALL
    SELECT r.attempt_id, '[{"dimension": "sweep", "needed": 0, "free": 0, "reason": "earlier trials of the sweep go first"}]'
    FROM sweep_offers o CROSS JOIN LATERAL (
        SELECT w.attempt_id, w.reasons FROM placement_requests w WHERE w.sweep_id = o.sweep_id AND w.state = 'waiting' AND w.not_before <= now()
        ORDER BY w.requested_at, w.attempt_id OFFSET o.offer) r
    WHERE r.reasons <> '[{"dimension": "sweep", "needed": 0, "free": 0, "reason": "earlier trials of the sweep go first"}]'
), locked AS (
    SELECT r.attempt_id, h.reasons FROM placement_requests r JOIN held h ON h.attempt_id = r.attempt_id
    WHERE r.state = 'waiting' ORDER BY r.attempt_id FOR NO KEY UPDATE OF r
)
UPDATE placement_requests r SET reasons = l.reasons, kept_host_id = NULL, kept_device_id = NULL, kept_since = NULL
FROM locked l WHERE r.attempt_id = l.attempt_id;

-- name: CountRunningBySweep :many
-- The leases that count for max_parallel. Attempts that go on elsewhere, because their host is lost or its
-- worker reports a problem, do not count. They only keep their host's memory booked for that time: the worker
-- keeps their containers, as it gets the attempts back once the problem is over and no other host took them.
-- away counts the attempts that their trials are to run again: their places are for the retries.
WITH lost AS (
    SELECT l.sweep_id, count(*) AS attempts, count(*) FILTER (WHERE NOT a.refused AND t.finished_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM attempts n WHERE n.trial_id = a.trial_id AND n.number > a.number)) AS away
    FROM hosts h JOIN leases l ON l.host_id = h.id JOIN attempts a ON a.id = l.attempt_id JOIN trials t ON t.id = a.trial_id
    WHERE l.state <> 'released' AND a.state = 'abandoned' AND (h.problem <> '' OR now() - h.last_seen_at > @lost_after::interval)
    GROUP BY l.sweep_id
)
SELECT l.sweep_id, (count(*) - coalesce(max(o.attempts), 0))::integer AS attempts, coalesce(max(o.away), 0)::integer AS away
FROM leases l LEFT JOIN lost o ON o.sweep_id = l.sweep_id
WHERE l.state <> 'released'
GROUP BY l.sweep_id;

-- name: PlaceRequests :many
-- Turns waiting requests into attempts with leases, books their hosts and devices, and puts the news for
-- their workflows into the outbox, in one statement. The CHECKs of hosts and devices refuse the whole when it
-- is too much. An attempt on a cordoned host is its test attempt: the next one may come after a pause of two
-- minutes to half an hour. The same goes for a sweep whose image the host lacks. A sweep may have been paused
-- or stopped, or its max_parallel lowered, a host drained or a device cordoned, since the decision: later
-- placements must keep to the answer that the person got. The lock orders the two. An attempt gets what the
-- decision gives it. PostgreSQL runs these parts in any order, so each reads the one whose rows must be
-- locked before its own (store.go), and by ARRAY all of it: a semi-join stops at the first row that fits.
WITH decided AS (
    SELECT u.*, r.sweep_id, row_number() OVER (PARTITION BY r.sweep_id ORDER BY r.requested_at, r.attempt_id) AS nth
    FROM (SELECT unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@host_ids::uuid[]) AS host_id, unnest(@device_ids::text[]) AS device_id,
        unnest(@device_classes::text[]) AS device_class, unnest(@modes::text[]) AS mode, unnest(@memory_bytes::bigint[]) AS memory_bytes, unnest(@cpu_milli::bigint[]) AS cpu_milli,
        unnest(@device_bytes::bigint[]) AS device_bytes, unnest(@contexts::integer[]) AS contexts, unnest(@exclusive::boolean[]) AS exclusive,
        unnest(@exclusive_device::boolean[]) AS exclusive_device, unnest(@device_activity::integer[]) AS device_activity,
        unnest(@mixes::text[]) AS mix, unnest(@mix_owns::text[]) AS mix_own, unnest(@spill_bytes::bigint[]) AS spill_bytes) u
    JOIN placement_requests r ON r.attempt_id = u.attempt_id
    WHERE r.state = 'waiting'
), open AS (
    SELECT l.sweep_id, count(*) AS attempts
    FROM leases l JOIN attempts a ON a.id = l.attempt_id
    WHERE l.sweep_id IN (SELECT sweep_id FROM decided) AND l.state <> 'released' AND a.state IN ('placed', 'running')
    GROUP BY l.sweep_id
), locked_trials AS (
    SELECT id FROM trials
    WHERE id IN (SELECT trial_id FROM placement_requests WHERE attempt_id = ANY (@attempt_ids::uuid[]) AND state = 'waiting')
    ORDER BY id FOR NO KEY UPDATE
), locked_requests AS (
    SELECT d.*
    FROM decided d JOIN placement_requests r ON r.attempt_id = d.attempt_id JOIN locked_trials t ON t.id = r.trial_id
    JOIN sweeps s ON s.id = r.sweep_id LEFT JOIN open o ON o.sweep_id = s.id
    WHERE r.state = 'waiting' AND s.state IN ('pending', 'running') AND (s.max_parallel = 0 OR d.nth <= s.max_parallel - coalesce(o.attempts, 0))
    ORDER BY r.attempt_id FOR NO KEY UPDATE OF r FOR SHARE OF s
), locked_hosts AS (
    SELECT id FROM hosts WHERE id = ANY (ARRAY(SELECT host_id FROM locked_requests)) AND state <> 'draining' ORDER BY id FOR NO KEY UPDATE
), locked_devices AS (
    SELECT id FROM devices
    WHERE id = ANY (ARRAY(SELECT r.device_id FROM locked_requests r JOIN locked_hosts h ON h.id = r.host_id)) AND cordoned_at IS NULL
    ORDER BY id FOR NO KEY UPDATE
), placed AS (
    UPDATE placement_requests r SET state = 'placed', decided_at = now(), reasons = '[]', refusal = '', memory_bytes = d.memory_bytes,
        cpu_milli = d.cpu_milli, device_bytes = d.device_bytes, contexts = d.contexts, exclusive = d.exclusive, exclusive_device = d.exclusive_device
    FROM locked_requests d JOIN locked_hosts h ON h.id = d.host_id LEFT JOIN locked_devices v ON v.id = d.device_id
    WHERE r.attempt_id = d.attempt_id AND (d.device_id = '' OR v.id IS NOT NULL)
    RETURNING r.*, d.device_activity, d.mix, d.mix_own, d.spill_bytes, d.host_id, nullif(d.device_id, '') AS device_id, d.device_class, d.mode, nextval('lease_tokens') AS token
), new_attempts AS (
    INSERT INTO attempts (id, trial_id, number, stage, purpose, shape_key, host_id, device_id, device_class, token,
        memory_bytes, cpu_milli, device_bytes, contexts, exclusive, exclusive_device, mix, mix_own, spill_bytes)
    SELECT attempt_id, trial_id, number, stage, purpose, shape_key, host_id, device_id, device_class, token,
        memory_bytes, cpu_milli, device_bytes, contexts, exclusive, exclusive_device, mix, mix_own, spill_bytes FROM placed
), new_leases AS (
    INSERT INTO leases (attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, exclusive,
        exclusive_device, device_activity, token, shape_key, expires_at)
    SELECT attempt_id, sweep_id, host_id, device_id, memory_bytes, cpu_milli, device_bytes, contexts, exclusive,
        exclusive_device, device_activity, token, shape_key, now() + @term::interval FROM placed
), booked_hosts AS (
    UPDATE hosts h
    SET cpu_milli_reserved = h.cpu_milli_reserved + p.cpu_milli,
        memory_reserved_bytes = h.memory_reserved_bytes + p.memory_bytes,
        attempts = h.attempts + p.attempts,
        tests = CASE WHEN p.sweeps && h.failed_sweeps OR cardinality(h.failed_sweeps) > 1 THEN h.tests + 1 ELSE h.tests END,
        test_at = CASE WHEN h.cordoned_at IS NOT NULL AND (p.sweeps && h.failed_sweeps OR cardinality(h.failed_sweeps) > 1)
            THEN now() + least(30, 2 ^ least(h.tests + 1, 5)) * interval '1 minute' ELSE h.test_at END
    FROM (SELECT host_id, sum(cpu_milli)::bigint AS cpu_milli, sum(memory_bytes)::bigint AS memory_bytes, count(*)::integer AS attempts,
        array_agg(sweep_id) AS sweeps FROM placed GROUP BY host_id) p
    WHERE h.id = p.host_id
    RETURNING h.id
), tested_images AS (
    UPDATE missing_images m
    SET tests = m.tests + 1, test_at = now() + least(30, 2 ^ least(m.tests + 1, 5)) * interval '1 minute'
    FROM booked_hosts b JOIN placed p ON p.host_id = b.id
    WHERE m.host_id = b.id AND m.sweep_id = p.sweep_id AND m.test_at IS NOT NULL
), booked_devices AS (
    UPDATE devices d
    SET reserved_bytes = d.reserved_bytes + p.device_bytes, contexts_reserved = d.contexts_reserved + p.contexts,
        mode = CASE WHEN d.mode = 'exclusive' THEN d.mode ELSE p.mode END
    FROM booked_hosts b JOIN (SELECT host_id, device_id, sum(device_bytes)::bigint AS device_bytes, sum(contexts)::integer AS contexts, min(mode) AS mode
        FROM placed WHERE device_id IS NOT NULL GROUP BY host_id, device_id) p ON p.host_id = b.id
    WHERE d.id = p.device_id
), running_trials AS (
    UPDATE trials t SET state = 'running', started_at = coalesce(t.started_at, now())
    FROM placed p WHERE t.id = p.trial_id AND t.finished_at IS NULL
), told AS (
    INSERT INTO outbox (kind, workflow_id, payload)
    SELECT 'placed', workflow_id, jsonb_build_object('attempt_id', attempt_id) FROM placed
), announced AS (
    INSERT INTO events (kind, sweep_id, subject, data)
    SELECT 'trial.state', sweep_id, trial_id::text, '"running"'::jsonb FROM placed
)
SELECT attempt_id, token FROM placed;

-- name: MarkImpossible :execrows
UPDATE placement_requests SET state = 'impossible', decided_at = now(), reasons = @reasons
WHERE attempt_id = @attempt_id AND state = 'waiting';

-- name: StoreReasons :exec
-- A request that merely waits is not refused any more. Its back-off goes on to grow when it is refused again.
-- kept_since is when the kept host, or GPU, last changed.
WITH locked AS (
    SELECT r.attempt_id, u.reasons, nullif(u.host_id, '')::uuid AS host_id, nullif(u.device_id, '') AS device_id
    FROM placement_requests r JOIN (SELECT unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@all_reasons::jsonb[]) AS reasons,
        unnest(@kept_hosts::text[]) AS host_id, unnest(@kept_devices::text[]) AS device_id) u USING (attempt_id)
    WHERE r.state = 'waiting'
    ORDER BY r.attempt_id FOR NO KEY UPDATE OF r
)
UPDATE placement_requests r SET reasons = l.reasons, refusal = '', kept_host_id = l.host_id, kept_device_id = l.device_id,
    kept_since = CASE WHEN l.host_id IS NULL THEN NULL
        WHEN r.kept_host_id = l.host_id AND r.kept_device_id IS NOT DISTINCT FROM l.device_id THEN r.kept_since ELSE now() END
FROM locked l WHERE r.attempt_id = l.attempt_id;

-- name: SetRequestAside :exec
-- The back-off grows from a second to five minutes. Until then the placer keeps no
-- capacity free for the request.
UPDATE placement_requests
SET tries = tries + 1, refusal = @refusal, reasons = @reasons, kept_host_id = NULL, kept_device_id = NULL, kept_since = NULL, not_before = now() + least(300, 2 ^ least(tries, 9)) * interval '1 second'
WHERE attempt_id = @attempt_id AND state = 'waiting';

-- name: ListStuckRequests :many
-- Requests that the ledger refuses, and requests that have waited too long for another attempt of their
-- trial.
SELECT r.sweep_id, s.name AS sweep_name, t.number AS trial_number,
    CASE WHEN r.refusal <> '' THEN r.refusal ELSE 'attempt ' || open.number || ' of the trial is still open on host ' || h.name END::text AS reason,
    count(*) OVER ()::integer AS requests
FROM placement_requests r JOIN sweeps s ON s.id = r.sweep_id JOIN trials t ON t.id = r.trial_id
LEFT JOIN attempts open ON open.trial_id = r.trial_id AND open.state IN ('placed', 'running')
LEFT JOIN hosts h ON h.id = open.host_id
WHERE r.state = 'waiting' AND (r.refusal <> '' OR (open.id IS NOT NULL AND r.requested_at < now() - @late::interval))
ORDER BY r.requested_at
LIMIT @max_rows;

-- name: WithdrawRequest :execrows
UPDATE placement_requests SET state = 'withdrawn', decided_at = now(), reasons = '[]'
WHERE attempt_id = @attempt_id AND state = 'waiting';

-- name: WithdrawEarlierRequests :exec
-- What FenceEarlierAttempts does for attempts: a restored ledger still waits for a place for an attempt that
-- the trial is past.
UPDATE placement_requests SET state = 'withdrawn', decided_at = now(), reasons = '[]'
WHERE trial_id = @trial_id AND number < @number AND state = 'waiting';

-- name: ListQueue :many
-- Waiting requests, in the order of ListWaitingRequests, then the requests put off. It counts all of them to
-- know positions: a window of each open sweep. It looks up the trials for the page alone, because a join read
-- all of a long history.
SELECT q.*, (SELECT t.number FROM trials t WHERE t.id = q.trial_id)::integer AS trial_number FROM (
    SELECT r.attempt_id, r.number, r.stage, r.purpose, r.sweep_id, r.trial_id, r.reasons, r.not_before, s.name AS sweep_name,
        s.state AS sweep_state, (r.not_before > now())::boolean AS put_off, (s.state NOT IN ('pending', 'running'))::boolean AS inactive,
        greatest(r.requested_at, s.resumed_at)::timestamptz AS since,
        coalesce(k.id::text, '')::text AS kept_host_id, coalesce(k.name, '')::text AS kept_host, coalesce(r.kept_device_id, '')::text AS kept_device_id,
        coalesce(r.kept_since, 'epoch')::timestamptz AS kept_since,
        row_number() OVER (ORDER BY r.not_before > now(), s.state NOT IN ('pending', 'running'), greatest(r.requested_at, s.resumed_at), r.attempt_id)::integer AS position,
        count(*) OVER ()::integer AS total
    FROM placement_requests r JOIN sweeps s ON s.id = r.sweep_id LEFT JOIN hosts k ON k.id = r.kept_host_id
    WHERE r.state = 'waiting'
) q
WHERE (q.put_off, q.inactive, q.since, q.attempt_id) > (@after_put_off::boolean, @after_inactive::boolean, @after_since::timestamptz, @after_attempt::uuid)
ORDER BY q.position
LIMIT @max_rows;
