-- former is what a host had for attempts before it came back smaller, at shrunk_at: a trial that needs as much waits for a
-- while. NULL = it did not come back smaller.
ALTER TABLE hosts
    ADD former_memory_bytes bigint,
    ADD former_cpu_milli bigint,
    ADD shrunk_at timestamptz;

-- Which sweeps' images hosts lack, by the trials that could not start there for that reason. With test_at the host takes
-- only test attempts of the sweep.
CREATE TABLE missing_images (
    host_id   uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    sweep_id  uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    trials    uuid[] NOT NULL,
    failed_at timestamptz NOT NULL,
    reason    text NOT NULL,
    tests     integer NOT NULL DEFAULT 0,
    test_at   timestamptz,
    PRIMARY KEY (host_id, sweep_id)
);

CREATE INDEX missing_images_sweep ON missing_images (sweep_id);
