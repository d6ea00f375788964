-- name: ListFootprints :many
SELECT f.*, s.shape FROM footprints f JOIN shapes s ON s.key = f.shape_key
WHERE f.shape_key > @after_key
ORDER BY f.shape_key
LIMIT @max_rows;

-- name: FindFootprints :many
SELECT f.*, s.shape FROM footprints f JOIN shapes s ON s.key = f.shape_key
WHERE f.shape_key LIKE @prefix::text || '%'
ORDER BY f.shape_key
LIMIT 2;

-- name: FootprintsOfShapes :many
SELECT * FROM footprints WHERE shape_key = ANY (@shape_keys::text[]);

-- name: UpsertFootprint :exec
INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes, cpu_milli, duration_ns)
VALUES (@shape_key, @source, @samples, @memory_peak_bytes, @memory_floor_bytes, @floor_passed, @device_peak_bytes, @cpu_milli, @duration_ns)
ON CONFLICT (shape_key) DO UPDATE SET
    source = excluded.source, samples = excluded.samples, memory_peak_bytes = excluded.memory_peak_bytes,
    memory_floor_bytes = excluded.memory_floor_bytes, floor_passed = excluded.floor_passed, device_peak_bytes = excluded.device_peak_bytes,
    cpu_milli = excluded.cpu_milli, duration_ns = excluded.duration_ns, measured_at = now();

-- name: DeleteFootprint :execrows
DELETE FROM footprints WHERE shape_key = @shape_key;
