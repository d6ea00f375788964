-- Lost: of which attempts a limit removed the files, how large disks are and how fast they fill, and when sweeps were resumed.
ALTER TABLE sweeps DROP COLUMN resumed_at;
ALTER TABLE hosts
    DROP COLUMN disk_bytes,
    DROP COLUMN output_bytes,
    DROP COLUMN disk_mark_at,
    DROP COLUMN disk_mark_used_bytes,
    DROP COLUMN disk_day_at,
    DROP COLUMN disk_day_used_bytes;
ALTER TABLE attempts
    DROP CONSTRAINT attempts_outputs_removed_why,
    DROP COLUMN outputs_removed_at,
    DROP COLUMN outputs_removed_why;
