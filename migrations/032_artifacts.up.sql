-- Files that attempts wrote, in the store of artifacts. Of each attempt it is said what became of them: a worker with a store
-- takes those that are pending. A row of artifacts names an object before the object is there (stored_at is NULL), so that
-- nobody takes the object for one that no row names. Whole paths are in a key of PostgreSQL, hence their limit.
ALTER TABLE attempts
    ADD files_state text NOT NULL DEFAULT 'pending',
    ADD files_problem text NOT NULL DEFAULT '', -- why they are not stored; pending: why the last try failed
    ADD files_left_out integer NOT NULL DEFAULT 0,
    ADD files_tries integer NOT NULL DEFAULT 0, -- that failed
    ADD files_retry_at timestamptz, -- NULL = at once
    ADD files_settled_at timestamptz, -- when they were stored, or given up
    ADD CONSTRAINT attempts_files_state CHECK (files_state IN ('pending', 'stored', 'lost', 'removed')),
    ADD CONSTRAINT attempts_files_lost_why CHECK (files_state NOT IN ('lost', 'removed') OR files_problem <> ''),
    ADD CONSTRAINT attempts_files_stored_once_finished CHECK (files_state <> 'stored' OR state = 'finished'),
    ADD CONSTRAINT attempts_files_counts CHECK (files_left_out >= 0 AND files_tries >= 0);

UPDATE attempts SET files_state = 'lost', files_problem = 'removed before there was a store: ' || outputs_removed_why WHERE outputs_removed_at IS NOT NULL;

CREATE INDEX attempts_files_pending ON attempts (host_id, finished_at) WHERE files_state = 'pending' AND state = 'finished';

ALTER TABLE hosts ADD stores_files boolean NOT NULL DEFAULT false; -- its worker has a store

CREATE TABLE artifacts (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    path       text COLLATE "C" NOT NULL, -- below /trial/out
    bytes      bigint NOT NULL,
    sha256     bytea NOT NULL,
    stored_at  timestamptz, -- NULL = its object may not be there yet
    PRIMARY KEY (attempt_id, path),
    CONSTRAINT artifacts_path_is_below CHECK (octet_length(path) BETWEEN 1 AND 1024 AND path !~ '(^|/)(\.{0,2})(/|$)'),
    CONSTRAINT artifacts_bytes_not_negative CHECK (bytes >= 0),
    CONSTRAINT artifacts_sha256_is_whole CHECK (octet_length(sha256) = 32)
);

CREATE INDEX artifacts_sha256 ON artifacts (sha256);

-- The first that were not stored, and why; attempts.files_left_out counts all.
CREATE TABLE artifacts_left_out (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    number     integer NOT NULL, -- from 1 in its attempt
    path       text NOT NULL, -- what is no UTF-8 of it is replaced
    reason     text NOT NULL,
    PRIMARY KEY (attempt_id, number),
    CONSTRAINT artifacts_left_out_why CHECK (reason <> '')
);
