-- Data sets that a host's worker mounts, by name. A worker of an older version tells of none.
ALTER TABLE hosts ADD datasets text[] NOT NULL DEFAULT '{}';

-- What an attempt found in its data sets: version by name, empty where that is not known.
ALTER TABLE attempts ADD datasets jsonb NOT NULL DEFAULT '{}',
    ADD CONSTRAINT attempts_datasets_object CHECK (jsonb_typeof(datasets) = 'object');
