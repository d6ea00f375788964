-- By their values: a random search asks which of its draws were tried. The digest keeps the index small.
CREATE INDEX trials_by_params ON trials (sweep_id, (md5(params::text)::uuid));
