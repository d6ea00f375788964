-- How busy attempts keep their GPUs, in thousandths; 0 = not measured. A lease books what its shape was measured to use when it was placed.
ALTER TABLE attempts
    ADD device_sm_milli integer NOT NULL DEFAULT 0,
    ADD device_dram_milli integer NOT NULL DEFAULT 0,
    ADD device_tensor_milli integer NOT NULL DEFAULT 0;

ALTER TABLE leases ADD device_activity integer NOT NULL DEFAULT 0;

ALTER TABLE device_footprints
    ADD device_sm_milli integer NOT NULL DEFAULT 0,
    ADD device_dram_milli integer NOT NULL DEFAULT 0,
    ADD device_tensor_milli integer NOT NULL DEFAULT 0;

CREATE OR REPLACE VIEW class_footprints AS
SELECT shape_key, 'cpu'::text AS device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    0::bigint AS device_floor_bytes, 0 AS device_passed, cpu_milli, duration_ns, measured_at,
    0 AS device_sm_milli, 0 AS device_dram_milli, 0 AS device_tensor_milli
FROM footprints
UNION ALL
SELECT shape_key, device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    device_floor_bytes, device_passed, cpu_milli, duration_ns, measured_at,
    device_sm_milli, device_dram_milli, device_tensor_milli
FROM device_footprints;
