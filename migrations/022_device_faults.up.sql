-- Which attempts met a fault of their own program on their GPU, and for how long it is known how busy they kept it. An
-- attempt of a version before has none of it.
ALTER TABLE attempts
    ADD device_fault boolean NOT NULL DEFAULT false,
    ADD device_active_ns bigint NOT NULL DEFAULT 0,
    ADD device_unknown_ns bigint NOT NULL DEFAULT 0;

-- The placer asks in each round whose program faults by itself: few of all attempts.
CREATE INDEX attempts_device_fault ON attempts (trial_id) WHERE device_fault;
