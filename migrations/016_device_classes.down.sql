-- Lost: on what class of device attempts ran, which of them were alone on a GPU, how GPUs are shared, and what
-- shapes were measured to need on GPUs.
DROP VIEW class_footprints;
DROP TABLE device_footprints;
ALTER TABLE devices
    DROP COLUMN profile,
    DROP COLUMN mode,
    DROP COLUMN max_attempts,
    DROP COLUMN problem,
    DROP COLUMN lost_at;
ALTER TABLE leases DROP COLUMN exclusive_device;
ALTER TABLE attempts
    DROP COLUMN device_class,
    DROP COLUMN exclusive_device;
ALTER TABLE placement_requests
    DROP COLUMN last_oom,
    DROP COLUMN exclusive_device;
