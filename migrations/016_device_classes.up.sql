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

-- profile: of a MIG device; empty = a whole GPU. problem: why the device takes no attempts; empty = it takes them. found: its
-- host's worker found it when it started.
ALTER TABLE devices
    ADD profile text NOT NULL DEFAULT '',
    ADD mode text NOT NULL DEFAULT 'time_slicing',
    ADD max_attempts integer NOT NULL DEFAULT 0,
    ADD problem text NOT NULL DEFAULT '',
    ADD found boolean NOT NULL DEFAULT true,
    ADD CONSTRAINT devices_mode CHECK (mode IN ('exclusive', 'time_slicing', 'mps')),
    ADD CONSTRAINT devices_max_attempts CHECK (max_attempts >= 0);
