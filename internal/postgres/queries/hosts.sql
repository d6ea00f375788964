-- name: RegisterHost :exec
-- A host that comes back smaller keeps what its leases hold: totals never fall below what is reserved. The smaller totals
-- are targets, which count for placements at once and become the totals as leases end.
INSERT INTO hosts AS h (id, name, boot_id, cpu_milli, memory_bytes, memory_headroom_bytes, memory_free_bytes, disk_free_bytes, disk_headroom_bytes, max_attempts, version)
VALUES (@id, @name, @boot_id, @cpu_milli, @memory_bytes, @memory_headroom_bytes, @memory_free_bytes, @disk_free_bytes, @disk_headroom_bytes, @max_attempts, @version)
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
    last_seen_at = now();

-- name: TouchHost :execrows
UPDATE hosts SET last_seen_at = now(), memory_free_bytes = @memory_free_bytes, disk_free_bytes = @disk_free_bytes
WHERE id = @id AND (removed_at IS NULL OR removed_at < last_seen_at);

-- name: ListHosts :many
SELECT h.*, (now() - h.last_seen_at > @lost_after::interval)::boolean AS lost,
    EXISTS (SELECT 1 FROM leases l WHERE l.host_id = h.id AND l.state <> 'released' AND l.exclusive AND l.device_id IS NULL) AS exclusive
FROM hosts h
WHERE h.removed_at IS NULL OR h.removed_at < h.last_seen_at
ORDER BY h.name, h.id;

-- name: ListDevices :many
SELECT d.*, EXISTS (SELECT 1 FROM leases l WHERE l.device_id = d.id AND l.state <> 'released' AND l.exclusive) AS exclusive
FROM devices d ORDER BY d.host_id, d.id;

-- name: HostLost :one
SELECT (now() - last_seen_at > @lost_after::interval)::boolean AS lost FROM hosts WHERE id = @id;

-- name: RemoveHost :exec
-- Its row stays for the attempts that ran there. hosts_removed_holds_nothing refuses it while a lease holds something.
UPDATE hosts SET removed_at = greatest(now(), last_seen_at) WHERE id = @id;

-- name: SetHostState :execrows
UPDATE hosts SET state = @state WHERE id = @id;

-- name: GetHostName :one
SELECT name FROM hosts WHERE id = @id;
