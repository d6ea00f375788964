-- How much of an attempt's host memory is for what its GPU cannot hold, in unified memory; 0 = it is not in unified memory.
ALTER TABLE attempts
    ADD spill_bytes bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT attempts_spill_is_alone CHECK (spill_bytes = 0 OR spill_bytes > 0 AND exclusive_device AND spill_bytes <= memory_bytes);
