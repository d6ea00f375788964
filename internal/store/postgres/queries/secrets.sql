-- name: PutSecret :one
-- A new one is stored only where there are fewer than max_secrets.
INSERT INTO secrets AS s (name, ciphertext, key, created_by, updated_by)
SELECT @name, @ciphertext, @key, @person::text, @person::text
WHERE EXISTS (SELECT 1 FROM secrets o WHERE o.name = @name) OR (SELECT count(*) FROM secrets) < @max_secrets::integer
ON CONFLICT (name) DO UPDATE SET ciphertext = excluded.ciphertext, key = excluded.key, version = s.version + 1,
    updated_at = now(), updated_by = excluded.updated_by
RETURNING name, key, version, created_at, created_by, updated_at, updated_by;

-- name: GetSecret :one
SELECT name, key, ciphertext FROM secrets WHERE name = @name;

-- name: ListSecrets :many
SELECT name, key, version, created_at, created_by, updated_at, updated_by FROM secrets ORDER BY name;

-- name: KeepSecrets :many
-- Returns which of the names are stored, and locks them against deletion until the transaction ends. Storing
-- a secret again does not wait for this lock.
SELECT name FROM secrets WHERE name = ANY (@names::text[]) ORDER BY name FOR KEY SHARE;

-- name: LockSecret :execrows
-- Waits for sweeps that are being stored and mount it; later ones wait for the transaction's end.
SELECT 1 FROM secrets WHERE name = @name FOR UPDATE;

-- name: DeleteSecret :execrows
DELETE FROM secrets WHERE name = @name;

-- name: ListSweepsWithSecret :many
-- Sweeps that have not ended and mount it.
SELECT w.id, w.name FROM sweeps w
WHERE w.finished_at IS NULL AND w.secret_names @> to_jsonb(@name::text)
ORDER BY w.created_at, w.id LIMIT @max_rows::integer;
