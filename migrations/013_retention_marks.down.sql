-- Lost: what hosts say of files that cannot be removed, and why logs and metrics of sweeps were removed; what of them was to go and is there still stays.
DROP INDEX sweeps_logs_to_purge;
DROP INDEX sweeps_metrics_to_purge;
ALTER TABLE sweeps
    DROP COLUMN logs_removed_why,
    DROP COLUMN logs_purged_at,
    DROP COLUMN metrics_removed_why,
    DROP COLUMN metrics_purged_at;
ALTER TABLE hosts DROP COLUMN outputs_problem;
