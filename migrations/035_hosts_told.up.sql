-- Which data sets a host has, and that it stores files, its worker tells after it registered. A worker of an older version
-- registers and tells neither: what a newer one told is forgotten then. Workers that tell count their registrations.
ALTER TABLE hosts ADD told integer NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION forget_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.datasets := '{}';
    NEW.stores_files := false;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER hosts_forget_told BEFORE UPDATE OF version ON hosts FOR EACH ROW
    WHEN (NEW.told = OLD.told AND (NEW.stores_files OR NEW.datasets <> '{}')) EXECUTE FUNCTION forget_told();
