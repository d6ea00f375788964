-- name: RememberImage :exec
INSERT INTO image_digests AS i (ref, digest) VALUES (@ref, @digest)
ON CONFLICT (ref) DO UPDATE SET digest = excluded.digest, resolved_at = now();

-- name: RecallImage :one
SELECT digest, resolved_at FROM image_digests WHERE ref = @ref;

-- name: TellHostImages :exec
INSERT INTO host_images AS h (host_id, images, pulls) VALUES (@host_id, coalesce(@images::text[], '{}'), @pulls)
ON CONFLICT (host_id) DO UPDATE SET images = excluded.images, pulls = excluded.pulls, told_at = now();

-- name: ListTellingHosts :many
-- Hosts that told lately which images they have, each with the wanted ones that it has.
SELECT h.host_id, h.pulls, ARRAY(SELECT own FROM unnest(h.images) AS own WHERE own = ANY (@images::text[]))::text[] AS has
FROM host_images h WHERE h.told_at > now() - @fresh::interval ORDER BY h.host_id;
