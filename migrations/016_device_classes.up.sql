-- What an attempt needs depends on the class of device that it runs on: a request says which out-of-memory of its trial came
-- last, and is sized when it is decided; an attempt keeps the class that it was placed on. A request of the version before
-- has no last_oom: its attempts say it.
ALTER TABLE placement_requests
    ADD last_oom json,
    ADD exclusive_device boolean NOT NULL DEFAULT false;

ALTER TABLE attempts
    ADD device_class text NOT NULL DEFAULT 'cpu',
    ADD exclusive_device boolean NOT NULL DEFAULT false;

ALTER TABLE leases ADD exclusive_device boolean NOT NULL DEFAULT false;

-- profile: of a MIG device; empty = a whole GPU. problem: why the device takes no attempts; empty = it takes them. lost_at: since when
-- its host's worker does not find it any more.
ALTER TABLE devices
    ADD profile text NOT NULL DEFAULT '',
    ADD mode text NOT NULL DEFAULT 'time_slicing',
    ADD max_attempts integer NOT NULL DEFAULT 0,
    ADD problem text NOT NULL DEFAULT '',
    ADD lost_at timestamptz,
    ADD CONSTRAINT devices_mode CHECK (mode IN ('exclusive', 'time_slicing', 'mps')),
    ADD CONSTRAINT devices_max_attempts CHECK (max_attempts >= 0);

-- What is known of a shape on a class of GPU. The version before knows one footprint of a shape and writes it by the shape's key:
-- footprints stays what was measured on a host's cores.
CREATE TABLE device_footprints (
    shape_key          text NOT NULL REFERENCES shapes (key),
    device_class       text NOT NULL,
    source             text NOT NULL,
    samples            integer NOT NULL DEFAULT 0,
    memory_peak_bytes  bigint NOT NULL DEFAULT 0,
    memory_floor_bytes bigint NOT NULL DEFAULT 0,
    floor_passed       integer NOT NULL DEFAULT 0,
    device_peak_bytes  bigint NOT NULL DEFAULT 0,
    device_floor_bytes bigint NOT NULL DEFAULT 0,
    device_passed      integer NOT NULL DEFAULT 0,
    cpu_milli          bigint NOT NULL DEFAULT 0,
    duration_ns        bigint NOT NULL DEFAULT 0,
    measured_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shape_key, device_class),
    CONSTRAINT device_footprints_class CHECK (device_class NOT IN ('', 'cpu')),
    CONSTRAINT device_footprints_source CHECK (source IN ('full', 'short', 'partial', 'raised')),
    CONSTRAINT device_footprints_not_negative
        CHECK (samples >= 0 AND memory_peak_bytes >= 0 AND memory_floor_bytes >= 0 AND floor_passed >= 0 AND device_peak_bytes >= 0
            AND device_floor_bytes >= 0 AND device_passed >= 0)
);

CREATE VIEW class_footprints AS
SELECT shape_key, 'cpu'::text AS device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    0::bigint AS device_floor_bytes, 0 AS device_passed, cpu_milli, duration_ns, measured_at
FROM footprints
UNION ALL
SELECT shape_key, device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    device_floor_bytes, device_passed, cpu_milli, duration_ns, measured_at
FROM device_footprints;
