-- name: RegisterHost :exec
-- A host that comes back smaller keeps its leases: totals never fall below the reservations. The smaller
-- totals are targets. They count for placements at once and become the totals as leases end.
INSERT INTO hosts AS h (id, name, boot_id, cpu_milli, memory_bytes, memory_headroom_bytes, memory_free_bytes, disk_free_bytes, disk_headroom_bytes, max_attempts, version, machine_id, data_dir, datasets, secret_keys)
VALUES (@id, @name, @boot_id, @cpu_milli, @memory_bytes, @memory_headroom_bytes, @memory_free_bytes, @disk_free_bytes, @disk_headroom_bytes, @max_attempts, @version, @machine_id, @data_dir, coalesce(@datasets::text[], '{}'), coalesce(@secret_keys::text[], '{}'))
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name,
    boot_id = excluded.boot_id,
    cpu_milli = greatest(excluded.cpu_milli, h.cpu_milli_reserved),
    memory_bytes = greatest(excluded.memory_bytes, h.memory_reserved_bytes + excluded.memory_headroom_bytes),
    memory_headroom_bytes = excluded.memory_headroom_bytes,
    memory_free_bytes = excluded.memory_free_bytes,
    disk_free_bytes = excluded.disk_free_bytes,
    disk_headroom_bytes = excluded.disk_headroom_bytes,
    max_attempts = CASE WHEN excluded.max_attempts = 0 THEN 0 ELSE greatest(excluded.max_attempts, h.attempts) END,
    cpu_milli_target = CASE WHEN excluded.cpu_milli < h.cpu_milli_reserved THEN excluded.cpu_milli END,
    memory_bytes_target = CASE WHEN excluded.memory_bytes < h.memory_reserved_bytes + excluded.memory_headroom_bytes THEN excluded.memory_bytes END,
    max_attempts_target = CASE WHEN excluded.max_attempts > 0 AND excluded.max_attempts < h.attempts THEN excluded.max_attempts END,
    version = excluded.version,
    removed_at = NULL,
    test_at = CASE WHEN h.cordoned_at IS NOT NULL THEN now() END, -- a new worker may have been mended
    machine_id = excluded.machine_id,
    data_dir = excluded.data_dir,
    datasets = excluded.datasets,
    secret_keys = excluded.secret_keys,
    last_seen_at = now();

-- name: NoteSmallerHost :exec
-- Keeps a host's earlier size before it comes back smaller: of several steps within @grace the
-- largest.
UPDATE hosts SET
    former_memory_bytes = greatest(coalesce(memory_bytes_target, memory_bytes) - memory_headroom_bytes,
        CASE WHEN shrunk_at > now() - @grace::interval THEN former_memory_bytes END),
    former_cpu_milli = greatest(coalesce(cpu_milli_target, cpu_milli), CASE WHEN shrunk_at > now() - @grace::interval THEN former_cpu_milli END),
    shrunk_at = now()
WHERE id = @id AND (@capacity_bytes::bigint < coalesce(memory_bytes_target, memory_bytes) - memory_headroom_bytes
    OR @cpu_milli::bigint < coalesce(cpu_milli_target, cpu_milli));

-- name: TouchHost :execrows
-- The mark of used disk moves on once a day. The mark before it is 24 to 48 hours old and tells how fast the
-- disk fills. A host with several disks reports the fullest: a size that jumps by more than 1 % is another
-- disk, whose growth is not known yet.
UPDATE hosts h
SET last_seen_at = now(), memory_free_bytes = @memory_free_bytes, disk_free_bytes = @disk_free_bytes::bigint, problem = @problem,
    disk_bytes = @disk_bytes::bigint, output_bytes = @output_bytes, outputs_problem = @outputs_problem,
    datasets = coalesce(sqlc.narg('datasets')::text[], h.datasets),
    disk_day_at = CASE WHEN m.fresh THEN h.disk_day_at WHEN NOT m.other THEN h.disk_mark_at END,
    disk_day_used_bytes = CASE WHEN m.fresh THEN h.disk_day_used_bytes ELSE h.disk_mark_used_bytes END,
    disk_mark_at = CASE WHEN m.fresh THEN h.disk_mark_at WHEN @disk_bytes::bigint > 0 THEN now() END,
    disk_mark_used_bytes = CASE WHEN m.fresh THEN h.disk_mark_used_bytes ELSE sqlc.arg(disk_bytes)::bigint - sqlc.arg(disk_free_bytes)::bigint END
FROM (
    SELECT o.id, o.other, NOT o.other AND coalesce(o.disk_mark_at >= now() - interval '1 day', false) AS fresh
    FROM (
        SELECT id, disk_mark_at, disk_bytes > 0 AND @disk_bytes::bigint > 0 AND abs(disk_bytes - @disk_bytes::bigint) > disk_bytes / 100 AS other
        FROM hosts
    ) o
) m
WHERE h.id = @id AND m.id = h.id AND (h.removed_at IS NULL OR h.removed_at < h.last_seen_at);

-- name: ListHosts :many
-- Growth is known once there is a mark before the last, and the size of the disk.
SELECT h.*, (now() - h.last_seen_at > @lost_after::interval)::boolean AS lost,
    (now() - h.last_seen_at > @late_after::interval)::boolean AS late, coalesce(h.test_at <= now(), false)::boolean AS test_due,
    CASE WHEN h.disk_bytes = 0 OR h.disk_day_at IS NULL THEN 0 ELSE (h.disk_bytes - h.disk_free_bytes - h.disk_day_used_bytes)
        / greatest(extract(epoch FROM h.last_seen_at - h.disk_day_at) / 86400, 1) END::bigint AS disk_growth_bytes,
    EXISTS (SELECT 1 FROM leases l WHERE l.host_id = h.id AND l.state <> 'released' AND l.exclusive) AS exclusive
FROM hosts h
WHERE h.removed_at IS NULL OR h.removed_at < h.last_seen_at
ORDER BY h.name, h.id;

-- name: ListFormerHosts :many
-- Removed hosts, and the earlier size of hosts that came back smaller. Their measurements are not kept.
SELECT f.id, h.name, f.memory_bytes::bigint AS memory_bytes, f.cpu_milli::bigint AS cpu_milli, f.removed, f.until::timestamptz AS until
FROM (
    SELECT id, coalesce(memory_bytes_target, memory_bytes) - memory_headroom_bytes AS memory_bytes,
        coalesce(cpu_milli_target, cpu_milli) AS cpu_milli, true AS removed, removed_at + @grace::interval AS until
    FROM hosts WHERE removed_at >= last_seen_at AND removed_at > now() - @grace::interval
    UNION ALL
    SELECT id, former_memory_bytes, former_cpu_milli, false, shrunk_at + @grace::interval
    FROM hosts WHERE shrunk_at > now() - @grace::interval
) f JOIN hosts h ON h.id = f.id
ORDER BY h.name, f.id, f.removed;

-- name: HostLost :one
SELECT (now() - last_seen_at > @lost_after::interval)::boolean AS lost FROM hosts WHERE id = @id;

-- name: RemoveHost :exec
-- Its row stays for the attempts that ran there. hosts_removed_holds_nothing refuses it while a lease holds something.
UPDATE hosts SET removed_at = greatest(now(), last_seen_at) WHERE id = @id;

-- name: SetHostState :execrows
-- An operator who lets a host take attempts says that it is mended.
UPDATE hosts SET state = @state,
    failed_trials = CASE WHEN @state = 'ready' THEN '{}' ELSE failed_trials END,
    failed_sweeps = CASE WHEN @state = 'ready' THEN '{}' ELSE failed_sweeps END,
    cordoned_at = CASE WHEN @state = 'ready' THEN NULL ELSE cordoned_at END,
    test_at = CASE WHEN @state = 'ready' THEN NULL ELSE test_at END,
    tests = CASE WHEN @state = 'ready' THEN 0 ELSE tests END
WHERE id = @id;

-- name: NoteFailedStart :exec
-- Counts a trial whose container the host could not start. After HostCordonAfter different trials in a row
-- the host is cordoned: for their sweep when they have one in common, because that sweep may be at fault,
-- else for all. Run it with the host's row locked.
UPDATE hosts h
SET failed_trials = s.trials, failed_sweeps = s.sweeps, failed_at = now(),
    cordoned_at = CASE WHEN s.cordon THEN coalesce(h.cordoned_at, now()) END,
    cordon_reason = @reason,
    test_at = CASE WHEN s.cordon THEN coalesce(h.test_at, now() + interval '1 minute') END,
    tests = CASE WHEN h.cordoned_at IS NULL THEN 0 ELSE h.tests END
FROM (
    SELECT p.id, f.trials, f.sweeps, p.cordoned OR cardinality(f.trials) >= @cordon_after::integer AS cordon
    FROM (
        SELECT o.id, a.trial_id, t.sweep_id, o.cordoned_at IS NOT NULL AS cordoned,
            CASE WHEN o.cordoned_at IS NULL AND o.failed_at < now() - @within::interval THEN '{}' ELSE o.failed_trials END AS trials,
            CASE WHEN o.cordoned_at IS NULL AND o.failed_at < now() - @within::interval THEN '{}' ELSE o.failed_sweeps END AS sweeps
        FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN hosts o ON o.id = a.host_id
        WHERE a.id = @attempt_id AND a.container_id = ''
    ) p CROSS JOIN LATERAL (
        SELECT CASE WHEN p.trial_id = ANY (p.trials) OR cardinality(p.trials) >= 16 THEN p.trials ELSE p.trials || p.trial_id END AS trials,
            CASE WHEN p.sweep_id = ANY (p.sweeps) OR cardinality(p.sweeps) >= 16 THEN p.sweeps ELSE p.sweeps || p.sweep_id END AS sweeps
    ) f
) s
WHERE h.id = s.id;

-- name: ListMissingImages :many
-- The sweeps whose images hosts lack, with recent trials.
SELECT host_id, sweep_id, reason, (test_at IS NOT NULL)::boolean AS cordoned, coalesce(test_at <= now(), false)::boolean AS test_due
FROM missing_images WHERE failed_at > now() - CASE WHEN test_at IS NULL THEN @within::interval ELSE @kept::interval END
ORDER BY host_id, sweep_id;

-- name: ForgetMissingImages :exec
-- Those of the attempt's host that are old. Run it with the host's row locked.
DELETE FROM missing_images m USING attempts a
WHERE a.id = @attempt_id AND m.host_id = a.host_id AND m.failed_at <= now() - CASE WHEN m.test_at IS NULL THEN @within::interval ELSE @kept::interval END;

-- name: NoteMissingImage :exec
-- Counts a trial whose image the host lacks, which is not the host's fault. After HostCordonAfter different
-- trials the host takes only test attempts of their sweep. Run it with the host's row locked.
INSERT INTO missing_images AS m (host_id, sweep_id, trials, failed_at, reason)
SELECT a.host_id, t.sweep_id, ARRAY[a.trial_id], now(), @reason::text
FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.id = @attempt_id AND a.container_id = ''
ON CONFLICT (host_id, sweep_id) DO UPDATE SET
    trials = CASE WHEN excluded.trials <@ m.trials OR cardinality(m.trials) >= 16 THEN m.trials ELSE m.trials || excluded.trials END,
    failed_at = now(), reason = excluded.reason,
    test_at = coalesce(m.test_at, CASE WHEN cardinality(m.trials) + (NOT excluded.trials <@ m.trials)::integer >= @cordon_after::integer
        THEN now() + interval '1 minute' END);

-- name: TestMissingImages :exec
-- A new worker may have been given the images.
UPDATE missing_images SET test_at = now() WHERE host_id = @host_id AND test_at IS NOT NULL;

-- name: ClearMissingImages :exec
DELETE FROM missing_images WHERE host_id = @host_id;

-- name: GetHostName :one
SELECT name FROM hosts WHERE id = @id;

-- name: LockMachine :exec
SELECT pg_advisory_xact_lock(hashtextextended('machine:' || @machine_id::text, 0));

-- name: ListMachineHosts :many
-- The other hosts of one machine in its current boot, the one with the most attempts first. A running worker
-- holds its host's lock (Store.Own), so a lock that this transaction gets belongs to no running worker.
SELECT id, name, data_dir, attempts, (NOT pg_try_advisory_xact_lock(hashtextextended('lead:host ' || id::text, 0)))::boolean AS served
FROM hosts WHERE machine_id = @machine_id AND boot_id = @boot_id AND id <> @id
ORDER BY attempts DESC, last_seen_at DESC;
