-- Lost: which attempts met a fault of their own on their GPU, and for how long it is known how busy they kept it.
DROP INDEX attempts_device_fault;

ALTER TABLE attempts
    DROP COLUMN device_fault,
    DROP COLUMN device_active_ns,
    DROP COLUMN device_unknown_ns;
