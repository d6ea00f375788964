-- mps_contexts: clients that the device's MPS daemon takes; 0 = it has none. From here on mode is how the attempts that are on a device
-- share it, or how the last ones did: the placement of the first decides.
ALTER TABLE devices
    ADD mps_contexts integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT devices_mps_contexts CHECK (mps_contexts >= 0);
