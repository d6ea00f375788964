-- name: InsertLogChunk :exec
INSERT INTO log_chunks (attempt_id, "offset", stream, at, data)
VALUES (@attempt_id, @chunk_offset, @stream, @at, @data)
ON CONFLICT (attempt_id, "offset") DO UPDATE SET at = excluded.at, data = excluded.data
WHERE log_chunks.stream = excluded.stream AND length(log_chunks.data) < length(excluded.data);

-- name: LogEnd :one
SELECT coalesce(max("offset" + length(data)), 0)::bigint AS size, coalesce(max(at), 'epoch')::timestamptz AS last_at
FROM log_chunks WHERE attempt_id = @attempt_id AND stream <> 'berth';

-- name: ReadLog :many
SELECT "offset", stream, at, data FROM log_chunks
WHERE attempt_id = @attempt_id AND "offset" + length(data) > @from_offset::bigint
ORDER BY "offset"
LIMIT @max_rows;
