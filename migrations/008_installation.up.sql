-- Which installation this database is of. The table outlives a step back. Temporal's namespace keeps the id too: two installations never share one, and
-- a namespace that has lost the id has lost its workflows.
CREATE TABLE IF NOT EXISTS installation (
    only_row          boolean PRIMARY KEY DEFAULT true,
    id                uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at        timestamptz NOT NULL DEFAULT now(),
    temporal_bound_at timestamptz,
    alarm             text NOT NULL DEFAULT '',
    alarm_at          timestamptz,
    CONSTRAINT installation_only_row CHECK (only_row),
    CONSTRAINT installation_alarm_has_time CHECK ((alarm <> '') = (alarm_at IS NOT NULL))
);

INSERT INTO installation DEFAULT VALUES ON CONFLICT DO NOTHING;

-- Two workers of one machine would sell its cores twice. An empty machine is of an older worker.
ALTER TABLE hosts
    ADD machine_id text NOT NULL DEFAULT '',
    ADD data_dir   text NOT NULL DEFAULT '';

CREATE INDEX hosts_machine ON hosts (machine_id) WHERE machine_id <> '';
