-- Lost: nothing but time. Statements read whole sweep files again.
DROP VIEW IF EXISTS sweep_offers;
DROP INDEX IF EXISTS placement_requests_waiting_of_sweep;
DROP INDEX IF EXISTS placement_requests_not_held;
DROP INDEX IF EXISTS placement_requests_retries;
ALTER TABLE leases DROP COLUMN IF EXISTS shape_key;
DROP INDEX IF EXISTS sweeps_open;
DROP INDEX IF EXISTS sweeps_held;
ALTER TABLE sweeps
    DROP COLUMN IF EXISTS resources,
    DROP COLUMN IF EXISTS datasets,
    DROP COLUMN IF EXISTS secret_names,
    DROP COLUMN IF EXISTS max_attempts,
    DROP COLUMN IF EXISTS template,
    DROP COLUMN IF EXISTS trial_limit,
    DROP COLUMN IF EXISTS metric,
    DROP COLUMN IF EXISTS minimizes;

DO $$
BEGIN
    IF to_regclass('sweep_files') IS NOT NULL THEN
        UPDATE sweeps s SET spec = f.spec FROM sweep_files f WHERE f.sweep_id = s.id;
    END IF;
END $$;

DROP INDEX IF EXISTS leases_unreleased_device;
DROP INDEX IF EXISTS attempts_of_host;
DROP INDEX IF EXISTS attempts_with_outputs;
DROP INDEX IF EXISTS trials_of_shape;
DROP INDEX IF EXISTS placement_requests_sweep;
DROP TABLE IF EXISTS sweep_entries;
DROP TABLE IF EXISTS sweep_files;
