-- Pages of lists are read by what they are sorted by, not by sorting all of it.
CREATE INDEX sweeps_by_name ON sweeps ((lower(name) COLLATE "C"), id);
CREATE INDEX trials_by_duration ON trials (sweep_id, (finished_at - started_at), number) WHERE finished_at IS NOT NULL;
