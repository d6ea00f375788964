-- What is free of the disk with the files of attempts, where checkpoints are fetched to: disk_free_bytes is of the fullest disk,
-- which may be Docker's. 0 = not known. A worker of an older version does not tell it: what a newer one told is forgotten
-- when it registers (035).
ALTER TABLE hosts
    ADD COLUMN IF NOT EXISTS files_free_bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS files_disk_bytes bigint NOT NULL DEFAULT 0; -- in all

CREATE OR REPLACE FUNCTION forget_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.datasets := '{}';
    NEW.stores_files := false;
    NEW.secret_keys := '{}';
    NEW.stores_checkpoints := false;
    NEW.files_free_bytes := 0;
    NEW.files_disk_bytes := 0;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER hosts_forget_told BEFORE UPDATE OF version ON hosts FOR EACH ROW
    WHEN (NEW.told = OLD.told AND (NEW.stores_files OR NEW.datasets <> '{}' OR NEW.secret_keys <> '{}' OR NEW.stores_checkpoints
        OR NEW.files_disk_bytes <> 0)) EXECUTE FUNCTION forget_told();
