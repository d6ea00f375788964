-- Secrets of trials, sealed by age: only who has the private part of the key, which is a file outside the database, opens them.
CREATE TABLE secrets (
    name       text PRIMARY KEY,
    ciphertext bytea NOT NULL,
    key        text NOT NULL,
    version    integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL,
    CONSTRAINT secrets_have_a_name CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'),
    CONSTRAINT secrets_are_sealed CHECK (substring(ciphertext FOR 21) = 'age-encryption.org/v1'::bytea AND length(ciphertext) < 128 * 1024),
    CONSTRAINT secrets_are_sealed_to_a_key CHECK (key LIKE 'age1%'),
    CONSTRAINT secrets_have_versions CHECK (version > 0)
);

-- Public parts of the keys with which a host's worker opens secrets. A worker of an older version tells of none (035).
ALTER TABLE hosts ADD secret_keys text[] NOT NULL DEFAULT '{}';

CREATE OR REPLACE FUNCTION forget_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.datasets := '{}';
    NEW.stores_files := false;
    NEW.secret_keys := '{}';
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER hosts_forget_told BEFORE UPDATE OF version ON hosts FOR EACH ROW
    WHEN (NEW.told = OLD.told AND (NEW.stores_files OR NEW.datasets <> '{}' OR NEW.secret_keys <> '{}')) EXECUTE FUNCTION forget_told();
