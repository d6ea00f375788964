-- Pages of lists are read by what they are sorted by, not by sorting all of it.
CREATE INDEX sweeps_by_name ON sweeps ((lower(name) COLLATE "C"), id);
