-- name: RememberImage :exec
INSERT INTO image_digests AS i (ref, digest) VALUES (@ref, @digest)
ON CONFLICT (ref) DO UPDATE SET digest = excluded.digest, resolved_at = now();

-- name: RecallImage :one
SELECT digest, resolved_at FROM image_digests WHERE ref = @ref;
