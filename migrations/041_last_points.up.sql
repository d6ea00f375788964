-- When the newest metrics and the newest memory of an attempt were stored: the event stream hints at them (docs/api.md). It is
-- written with every batch of points, so it is a narrow table of its own, with room on each page for the next version of a row,
-- and without an entry in the log: a crash empties it, and the next points write it again. A worker of an older version writes
-- none of it.
CREATE UNLOGGED TABLE IF NOT EXISTS last_points (
    attempt_id uuid PRIMARY KEY REFERENCES attempts (id) ON DELETE CASCADE,
    metrics_at timestamptz, -- NULL = none were stored
    memory_at  timestamptz
) WITH (fillfactor = 50);
