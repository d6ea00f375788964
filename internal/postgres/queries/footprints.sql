-- name: ListFootprints :many
-- All classes of so many shapes.
SELECT sqlc.embed(f), s.shape FROM class_footprints f JOIN shapes s ON s.key = f.shape_key
WHERE f.shape_key IN (
    SELECT DISTINCT k.shape_key FROM class_footprints k
    WHERE k.shape_key > @after_key ORDER BY k.shape_key LIMIT @max_rows)
ORDER BY f.shape_key, f.device_class <> 'cpu', f.device_class;

-- name: FindFootprints :many
-- All classes of the shapes whose keys begin so, of two shapes at most.
SELECT sqlc.embed(f), s.shape FROM class_footprints f JOIN shapes s ON s.key = f.shape_key
WHERE f.shape_key IN (
    SELECT DISTINCT k.shape_key FROM class_footprints k
    WHERE k.shape_key LIKE @prefix::text || '%' ORDER BY k.shape_key LIMIT 2)
ORDER BY f.shape_key, f.device_class <> 'cpu', f.device_class;

-- name: FootprintsOfShapes :many
SELECT * FROM class_footprints WHERE shape_key = ANY (@shape_keys::text[]);

-- name: UpsertFootprint :exec
INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes, cpu_milli, duration_ns)
VALUES (@shape_key, @source, @samples, @memory_peak_bytes, @memory_floor_bytes, @floor_passed, @device_peak_bytes, @cpu_milli, @duration_ns)
ON CONFLICT (shape_key) DO UPDATE SET
    source = excluded.source, samples = excluded.samples, memory_peak_bytes = excluded.memory_peak_bytes,
    memory_floor_bytes = excluded.memory_floor_bytes, floor_passed = excluded.floor_passed, device_peak_bytes = excluded.device_peak_bytes,
    cpu_milli = excluded.cpu_milli, duration_ns = excluded.duration_ns, measured_at = now();

-- name: UpsertDeviceFootprint :exec
INSERT INTO device_footprints (shape_key, device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    device_floor_bytes, device_passed, device_sm_milli, device_dram_milli, device_tensor_milli, cpu_milli, duration_ns)
VALUES (@shape_key, @device_class, @source, @samples, @memory_peak_bytes, @memory_floor_bytes, @floor_passed, @device_peak_bytes,
    @device_floor_bytes, @device_passed, @device_sm_milli, @device_dram_milli, @device_tensor_milli, @cpu_milli, @duration_ns)
ON CONFLICT (shape_key, device_class) DO UPDATE SET
    source = excluded.source, samples = excluded.samples, memory_peak_bytes = excluded.memory_peak_bytes,
    memory_floor_bytes = excluded.memory_floor_bytes, floor_passed = excluded.floor_passed, device_peak_bytes = excluded.device_peak_bytes,
    device_floor_bytes = excluded.device_floor_bytes, device_passed = excluded.device_passed,
    device_sm_milli = excluded.device_sm_milli, device_dram_milli = excluded.device_dram_milli, device_tensor_milli = excluded.device_tensor_milli,
    cpu_milli = excluded.cpu_milli, duration_ns = excluded.duration_ns, measured_at = now();

-- name: DeleteFootprints :one
-- Returns how many classes were forgotten.
WITH gpus AS (DELETE FROM device_footprints d WHERE d.shape_key = @shape_key RETURNING d.shape_key),
    cpu AS (DELETE FROM footprints f WHERE f.shape_key = @shape_key RETURNING f.shape_key)
SELECT ((SELECT count(*) FROM gpus) + (SELECT count(*) FROM cpu))::bigint;
