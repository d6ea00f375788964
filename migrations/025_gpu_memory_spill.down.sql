-- Lost: which attempts ran in unified memory, and how much host memory they had for that.
ALTER TABLE attempts
    DROP CONSTRAINT attempts_spill_is_alone,
    DROP spill_bytes;
