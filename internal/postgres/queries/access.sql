-- name: InsertIdempotencyKey :execrows
INSERT INTO idempotency_keys (principal, route, key, body_hash, sweep_id)
VALUES (@principal, @route, @key, @body_hash, @sweep_id)
ON CONFLICT DO NOTHING;

-- name: GetIdempotencyKey :one
SELECT * FROM idempotency_keys WHERE principal = @principal AND route = @route AND key = @key;

-- name: DeleteOldIdempotencyKeys :execrows
DELETE FROM idempotency_keys WHERE created_at < now() - @keep::interval;

-- name: DeleteSweepKeys :exec
DELETE FROM idempotency_keys WHERE sweep_id = @sweep_id;

-- name: InsertToken :one
INSERT INTO api_tokens (name, prefix, hash, role, expires_at) VALUES (@name, @prefix, @hash, @role, @expires_at)
RETURNING id, created_at;

-- name: GetTokenByHash :one
SELECT *, (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))::boolean AS valid FROM api_tokens WHERE hash = @hash;

-- name: ListTokens :many
SELECT * FROM api_tokens ORDER BY created_at, id;

-- name: RevokeToken :execrows
UPDATE api_tokens SET revoked_at = now() WHERE id = @id AND revoked_at IS NULL;

-- name: CountTokens :one
-- All that were ever made, and those that are valid.
SELECT count(*)::integer AS made,
    (count(*) FILTER (WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())))::integer AS valid
FROM api_tokens;

-- name: InsertAudit :exec
INSERT INTO audit_log (actor, action, object, ip, result) VALUES (@actor, @action, @object, @ip, @result);
