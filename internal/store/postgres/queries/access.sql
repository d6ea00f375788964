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
-- Of a life of 0 it never expires.
INSERT INTO api_tokens (name, prefix, hash, role, expires_at)
VALUES (@name, @prefix, @hash, @role, CASE WHEN @life::interval <> interval '0' THEN now() + @life::interval END)
RETURNING id, created_at, expires_at;

-- name: GetTokenByHash :one
SELECT id, name, prefix, role, created_at, expires_at, revoked_at, (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))::boolean AS valid FROM api_tokens WHERE hash = @hash;

-- name: ListTokens :many
SELECT id, name, prefix, role, created_at, expires_at, revoked_at, (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))::boolean AS valid FROM api_tokens ORDER BY created_at, id;

-- name: GetAdminTokens :one
-- The valid ones of admins, and when the last of them expires, 0 = never.
SELECT true AS known, (SELECT count(*) FROM api_tokens)::integer AS made, count(*)::integer AS valid,
    coalesce(CASE WHEN bool_or(expires_at IS NULL) THEN '0' ELSE max(expires_at) - now() END, '0')::interval AS "end"
FROM api_tokens
WHERE role = 'admin' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: LockAdminTokens :many
-- The valid ones, in one order, so that of two that are revoked at once the second sees the first.
SELECT id FROM api_tokens
WHERE role = 'admin' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
ORDER BY id FOR UPDATE;

-- name: RevokeToken :execrows
UPDATE api_tokens SET revoked_at = now() WHERE id = @id AND revoked_at IS NULL;

-- name: CountTokens :one
-- All tokens ever made, and the valid ones.
SELECT count(*)::integer AS made,
    (count(*) FILTER (WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())))::integer AS valid
FROM api_tokens;

-- name: DeleteExcessSessions :exec
-- Keeps the newest max_kept of a token.
DELETE FROM sessions WHERE hash IN (
    SELECT o.hash FROM sessions o WHERE o.token_id = @token_id ORDER BY o.created_at DESC, o.hash OFFSET @max_kept::integer);

-- name: InsertSession :one
-- A session ends with its token at the latest. An invalid token gets no session.
INSERT INTO sessions (hash, token_id, expires_at)
SELECT @hash, t.id, least(now() + @life::interval, t.expires_at) FROM api_tokens t
WHERE t.id = @token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
RETURNING expires_at;

-- name: GetSession :one
-- A session that is valid, with its token.
SELECT s.expires_at, t.id, t.name, t.role
FROM sessions s JOIN api_tokens t ON t.id = s.token_id
WHERE s.hash = @hash AND s.expires_at > now() AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now());

-- name: DeleteSession :exec
DELETE FROM sessions WHERE hash = @hash;

-- name: DeleteOldSessions :execrows
-- Expired sessions, and sessions of revoked tokens.
DELETE FROM sessions s USING api_tokens t WHERE t.id = s.token_id AND (s.expires_at <= now() OR t.revoked_at IS NOT NULL);

-- name: InsertAudit :exec
INSERT INTO audit_log (actor, action, object, ip, result) VALUES (@actor, @action, @object, @ip, @result);
