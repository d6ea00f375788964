-- Lost: how busy attempts keep their GPUs. It is measured again.
DROP VIEW class_footprints;

CREATE VIEW class_footprints AS
SELECT shape_key, 'cpu'::text AS device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    0::bigint AS device_floor_bytes, 0 AS device_passed, cpu_milli, duration_ns, measured_at
FROM footprints
UNION ALL
SELECT shape_key, device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    device_floor_bytes, device_passed, cpu_milli, duration_ns, measured_at
FROM device_footprints;

ALTER TABLE device_footprints
    DROP COLUMN device_sm_milli,
    DROP COLUMN device_dram_milli,
    DROP COLUMN device_tensor_milli;

ALTER TABLE leases DROP COLUMN device_activity;

ALTER TABLE attempts
    DROP COLUMN device_sm_milli,
    DROP COLUMN device_dram_milli,
    DROP COLUMN device_tensor_milli;
