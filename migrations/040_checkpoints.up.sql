-- Checkpoints in the store of artifacts, so that a trial goes on from its newest one on another host. A row of checkpoint_entries
-- names an object before the object is there; a checkpoint counts once it is whole (stored_at). A server of an older version does
-- not know these names: it would take objects after its --artifacts-grace, 7 days.
ALTER TABLE hosts ADD COLUMN IF NOT EXISTS stores_checkpoints boolean NOT NULL DEFAULT false; -- its worker does

-- A worker of an older version stores none (035).
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

ALTER TABLE attempts
    ADD COLUMN IF NOT EXISTS checkpoint_left boolean NOT NULL DEFAULT false, -- it ended with files in /trial/checkpoint
    ADD COLUMN IF NOT EXISTS checkpoint_settled_at timestamptz, -- its host has stored them, or will not
    ADD COLUMN IF NOT EXISTS checkpoint_problem text NOT NULL DEFAULT '', -- why it will not
    ADD COLUMN IF NOT EXISTS resumed text NOT NULL DEFAULT ''; -- from which checkpoint it went on, in plain words

CREATE INDEX IF NOT EXISTS attempts_checkpoint_coming ON attempts (host_id)
    WHERE checkpoint_left AND checkpoint_settled_at IS NULL AND state = 'finished';

CREATE TABLE IF NOT EXISTS checkpoints (
    id         uuid PRIMARY KEY,
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE, -- that wrote it
    trial_id   uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    bytes      bigint NOT NULL,
    stored_at  timestamptz, -- NULL = some of its objects may not be there yet
    CONSTRAINT checkpoints_bytes_not_negative CHECK (bytes >= 0)
);

CREATE INDEX IF NOT EXISTS checkpoints_trial ON checkpoints (trial_id);
CREATE INDEX IF NOT EXISTS checkpoints_attempt ON checkpoints (attempt_id);

CREATE TABLE IF NOT EXISTS checkpoint_entries (
    checkpoint_id uuid NOT NULL REFERENCES checkpoints (id) ON DELETE CASCADE,
    path          text COLLATE "C" NOT NULL, -- below /trial/checkpoint; '.' = the directory itself
    mode          bigint NOT NULL, -- as Go's fs.FileMode
    uid           integer NOT NULL,
    gid           integer NOT NULL,
    changed_ns    bigint NOT NULL, -- when it was last written, since 1970
    bytes         bigint NOT NULL,
    sha256        bytea, -- of files
    target        text NOT NULL, -- of links
    PRIMARY KEY (checkpoint_id, path),
    CONSTRAINT checkpoint_entries_path_is_below CHECK (path = '.' OR octet_length(path) BETWEEN 1 AND 1024 AND path !~ '(^|/)(\.{0,2})(/|$)'),
    CONSTRAINT checkpoint_entries_bytes_not_negative CHECK (bytes >= 0),
    CONSTRAINT checkpoint_entries_sha256_is_whole CHECK (octet_length(sha256) = 32)
);

CREATE INDEX IF NOT EXISTS checkpoint_entries_sha256 ON checkpoint_entries (sha256);
