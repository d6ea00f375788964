-- Lost: which checkpoints are in the store of artifacts, and from which one each attempt went on. Trials go on from a checkpoint
-- on the host that wrote it alone; the objects go with --artifacts-grace.
DROP TABLE IF EXISTS checkpoint_entries;
DROP TABLE IF EXISTS checkpoints;
DROP INDEX IF EXISTS attempts_checkpoint_coming;
ALTER TABLE attempts
    DROP COLUMN IF EXISTS checkpoint_left,
    DROP COLUMN IF EXISTS checkpoint_settled_at,
    DROP COLUMN IF EXISTS checkpoint_problem,
    DROP COLUMN IF EXISTS resumed;
CREATE OR REPLACE FUNCTION forget_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.datasets := '{}';
    NEW.stores_files := false;
    NEW.secret_keys := '{}';
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER hosts_forget_told BEFORE UPDATE OF version ON hosts FOR EACH ROW
    WHEN (NEW.told = OLD.told AND (NEW.stores_files OR NEW.datasets <> '{}' OR NEW.secret_keys <> '{}')) EXECUTE FUNCTION forget_told();

ALTER TABLE hosts DROP COLUMN IF EXISTS stores_checkpoints;
