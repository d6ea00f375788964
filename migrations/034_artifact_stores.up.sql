-- Stores of artifacts that have had this installation's mark. One that has it no more is away: an empty directory is a mount
-- point without its disk.
CREATE TABLE artifact_stores (
    store     text PRIMARY KEY, -- file:// and the absolute path of a directory, else its URL without secrets
    marked_at timestamptz NOT NULL DEFAULT now()
);
