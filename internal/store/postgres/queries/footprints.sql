-- name: ListFootprints :many
-- All classes of up to max_rows shapes, by key.
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

-- name: RecentUsage :many
-- For the newest successful attempts of a shape on each class of GPU: the largest memory by a framework's own
-- count, and how long of their runs they held the GPU, where their activity was measured; the peaks by phase, and the mean step of the newest one with a step. It reads only
-- the newest attempts of a shape.
WITH newest AS (
    SELECT a.device_class, a.framework_peak_bytes, a.wall_ns, a.device_active_ns, a.device_unknown_ns,
        a.step_ns, a.start_peak_bytes, a.training_peak_bytes, a.validation_peak_bytes,
        row_number() OVER (PARTITION BY a.device_class ORDER BY a.finished_at DESC, a.id) AS nth
    FROM (SELECT * FROM attempts WHERE shape_key = @shape_key ORDER BY placed_at DESC LIMIT @max_rows) a
    WHERE a.device_id IS NOT NULL AND a.state = 'finished' AND a.failure_kind = 'ok'
)
SELECT device_class, max(framework_peak_bytes)::bigint AS framework_peak_bytes,
    coalesce(sum(least(device_active_ns + device_unknown_ns, wall_ns)) FILTER (WHERE device_active_ns > 0), 0)::bigint AS held_ns,
    coalesce(sum(wall_ns) FILTER (WHERE device_active_ns > 0), 0)::bigint AS wall_ns,
    coalesce((array_agg(step_ns ORDER BY nth) FILTER (WHERE step_ns > 0))[1], 0)::bigint AS step_ns,
    max(start_peak_bytes)::bigint AS start_peak_bytes, max(training_peak_bytes)::bigint AS training_peak_bytes,
    max(validation_peak_bytes)::bigint AS validation_peak_bytes
FROM newest WHERE nth <= @newest::integer
GROUP BY device_class ORDER BY device_class;

-- name: UpsertFootprint :exec
-- Of the class cpu, or of a class of GPU, which has a table of its own.
WITH cpu AS (
    INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes, cpu_milli, duration_ns)
    SELECT @shape_key::text, @source::text, @samples::integer, @memory_peak_bytes::bigint, @memory_floor_bytes::bigint, @floor_passed::integer,
        @device_peak_bytes::bigint, @cpu_milli::bigint, @duration_ns::bigint WHERE @device_class::text = 'cpu'
    ON CONFLICT (shape_key) DO UPDATE SET
        source = excluded.source, samples = excluded.samples, memory_peak_bytes = excluded.memory_peak_bytes,
        memory_floor_bytes = excluded.memory_floor_bytes, floor_passed = excluded.floor_passed, device_peak_bytes = excluded.device_peak_bytes,
        cpu_milli = excluded.cpu_milli, duration_ns = excluded.duration_ns, measured_at = now()
)
INSERT INTO device_footprints (shape_key, device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    device_floor_bytes, device_passed, device_sm_milli, device_dram_milli, device_tensor_milli, cpu_milli, duration_ns)
SELECT @shape_key, @device_class, @source, @samples, @memory_peak_bytes, @memory_floor_bytes, @floor_passed, @device_peak_bytes,
    @device_floor_bytes::bigint, @device_passed::integer, @device_sm_milli::bigint, @device_dram_milli::bigint, @device_tensor_milli::bigint,
    @cpu_milli, @duration_ns WHERE @device_class <> 'cpu'
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

-- name: OpenOfFamily :many
-- The newest shapes of a family that open trials have.
SELECT n.key, n.shape FROM (SELECT s.key, s.shape FROM shapes s WHERE s.family = @family ORDER BY s.created_at DESC LIMIT @max_rows) n
WHERE EXISTS (SELECT FROM trials t WHERE t.shape_key = n.key AND t.finished_at IS NULL);

-- name: MeasuredOfFamily :many
-- Measured shapes of a family: among the first ones are the corners of the space, among the newest the values that a search likes.
SELECT sqlc.embed(f), k.shape FROM shapes k JOIN class_footprints f ON f.shape_key = k.key
WHERE f.samples > 0 AND k.key = ANY (ARRAY(
    (SELECT o.key FROM shapes o WHERE o.family = @family ORDER BY o.created_at LIMIT @max_rows)
    UNION
    (SELECT n.key FROM shapes n WHERE n.family = @family ORDER BY n.created_at DESC LIMIT @max_rows)
));
