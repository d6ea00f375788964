-- Lost: which sweeps were deleted but not removed yet: they are shown again; files that hosts were asked to remove stay.
DROP TABLE output_removals;
DROP INDEX events_created;
DROP INDEX sweeps_finished;
DROP INDEX sweeps_deleted;
ALTER TABLE sweeps
    DROP CONSTRAINT sweeps_deleted_once_ended,
    DROP COLUMN deleted_at,
    DROP COLUMN outputs_removed_at,
    DROP COLUMN logs_removed_at,
    DROP COLUMN metrics_removed_at;
