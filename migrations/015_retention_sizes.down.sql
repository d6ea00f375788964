-- Lost: what the logs and metric points of ended sweeps take, which is counted again, and what could not be deleted.
ALTER TABLE installation DROP COLUMN retention_problem;
ALTER TABLE sweeps
    DROP COLUMN log_bytes,
    DROP COLUMN metric_points;
