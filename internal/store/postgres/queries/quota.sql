-- name: OpenSweeps :one
SELECT count(*)::integer FROM sweeps WHERE created_by = @person AND finished_at IS NULL;
