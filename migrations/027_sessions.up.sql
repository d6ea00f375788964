-- A browser that logged in with an API token. Its cookie holds 32 random bytes; only their SHA-256 is here.
CREATE TABLE sessions (
    hash       bytea PRIMARY KEY,
    token_id   uuid NOT NULL REFERENCES api_tokens (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_hash_is_sha256 CHECK (length(hash) = 32),
    CONSTRAINT sessions_end_after_they_begin CHECK (expires_at > created_at)
);
CREATE INDEX sessions_by_token ON sessions (token_id, created_at);
