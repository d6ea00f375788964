-- name: RememberImage :exec
INSERT INTO image_digests AS i (ref, digest) VALUES (@ref, @digest)
ON CONFLICT (ref) DO UPDATE SET digest = excluded.digest, resolved_at = now();

-- name: RecallImage :one
SELECT digest, resolved_at FROM image_digests WHERE ref = @ref;

-- name: TellHostImages :exec
INSERT INTO host_images AS h (host_id, images, pulls) VALUES (@host_id, @images, @pulls)
ON CONFLICT (host_id) DO UPDATE SET images = excluded.images, pulls = excluded.pulls, told_at = now();

-- name: ListLackingHosts :many
-- Which hosts lack which of the images, of those that told it lately.
SELECT h.host_id, h.pulls, i.image::text AS image
FROM host_images h CROSS JOIN unnest(@images::text[]) AS i (image)
WHERE h.told_at > now() - @fresh::interval AND NOT i.image = ANY (h.images);
