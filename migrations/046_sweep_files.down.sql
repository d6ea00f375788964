-- Lost: nothing but time. Statements read whole sweep files again.
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

DROP TABLE IF EXISTS sweep_entries;
DROP TABLE IF EXISTS sweep_files;
