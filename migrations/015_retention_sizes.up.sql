-- What a sweep's logs and metric points take, counted once after its end, for the limits on all ended sweeps. NULL = not
-- counted yet. retention_problem says what a server cannot delete although it is over its limit; empty = nothing.
ALTER TABLE sweeps
    ADD log_bytes bigint,
    ADD metric_points bigint;

ALTER TABLE installation ADD retention_problem text NOT NULL DEFAULT '';
