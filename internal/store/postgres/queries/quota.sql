-- name: OpenSweeps :one
SELECT (SELECT count(*) FROM sweeps WHERE created_by = @person AND finished_at IS NULL)::integer AS open,
       EXISTS (SELECT 1 FROM idempotency_keys WHERE principal = @person AND route = @route AND key = @key)::boolean AS known;
