-- Lost: what is free of disks with files of attempts; trials with a checkpoint are placed by the fullest disk of a host.
CREATE OR REPLACE FUNCTION forget_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.datasets := '{}';
    NEW.stores_files := false;
    NEW.secret_keys := '{}';
    NEW.stores_checkpoints := false;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER hosts_forget_told BEFORE UPDATE OF version ON hosts FOR EACH ROW
    WHEN (NEW.told = OLD.told AND (NEW.stores_files OR NEW.datasets <> '{}' OR NEW.secret_keys <> '{}' OR NEW.stores_checkpoints)) EXECUTE FUNCTION forget_told();

ALTER TABLE hosts DROP COLUMN IF EXISTS files_free_bytes, DROP COLUMN IF EXISTS files_disk_bytes;
