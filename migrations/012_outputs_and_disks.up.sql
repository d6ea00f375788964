-- What the limit on the size of outputs removed is said of each attempt. Hosts say how large their disk is, how much of it
-- is outputs, and how much was in use a day ago: disk_mark is moved on once a day, and disk_day is the mark before. A
-- sweep that was paused waits from when it was resumed.
ALTER TABLE attempts
    ADD outputs_removed_at timestamptz,
    ADD outputs_removed_why text NOT NULL DEFAULT '',
    ADD CONSTRAINT attempts_outputs_removed_why CHECK ((outputs_removed_at IS NULL) = (outputs_removed_why = ''));

ALTER TABLE hosts
    ADD disk_bytes bigint NOT NULL DEFAULT 0,
    ADD output_bytes bigint NOT NULL DEFAULT 0,
    ADD disk_mark_at timestamptz,
    ADD disk_mark_used_bytes bigint NOT NULL DEFAULT 0,
    ADD disk_day_at timestamptz,
    ADD disk_day_used_bytes bigint NOT NULL DEFAULT 0;

ALTER TABLE sweeps ADD resumed_at timestamptz;
