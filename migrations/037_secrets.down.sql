-- Lost: all secrets. Sweeps that mount them are refused, and trials of those that were accepted run without them, and fail.
CREATE OR REPLACE FUNCTION forget_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.datasets := '{}';
    NEW.stores_files := false;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER hosts_forget_told BEFORE UPDATE OF version ON hosts FOR EACH ROW
    WHEN (NEW.told = OLD.told AND (NEW.stores_files OR NEW.datasets <> '{}')) EXECUTE FUNCTION forget_told();

ALTER TABLE hosts DROP secret_keys;
DROP TABLE secrets;
