-- name: InsertLogChunk :one
-- It returns how many attempts have the token: none when it is fenced.
WITH writer AS (
    SELECT a.id FROM attempts a WHERE a.id = @attempt_id AND a.token = @token
), written AS (
    INSERT INTO log_chunks (attempt_id, "offset", stream, at, data)
    SELECT w.id, @chunk_offset::bigint, @stream::text, @at::timestamptz, @data::bytea FROM writer w
    ON CONFLICT (attempt_id, "offset") DO UPDATE SET at = excluded.at, data = excluded.data
    WHERE log_chunks.stream = excluded.stream AND length(log_chunks.data) < length(excluded.data)
)
SELECT count(*) FROM writer;

-- name: LogEnd :one
SELECT coalesce(max("offset" + length(data)), 0)::bigint
FROM log_chunks WHERE attempt_id = @attempt_id AND stream <> 'berth';

-- name: ReadLog :many
SELECT "offset", stream, at, data FROM log_chunks
WHERE attempt_id = @attempt_id AND "offset" + length(data) > @from_offset::bigint
ORDER BY "offset"
LIMIT @max_rows;
