-- What a person deletes, or asked to be kept for a limited time only. A deleted sweep is not shown from that moment on;
-- its rows go in small steps, and its files when their hosts have read output_removals: a host that does not know of a
-- sweep, because the database was restored from an older copy, removes nothing.
ALTER TABLE sweeps
    ADD deleted_at timestamptz,
    ADD outputs_removed_at timestamptz,
    ADD logs_removed_at timestamptz,
    ADD metrics_removed_at timestamptz,
    ADD CONSTRAINT sweeps_deleted_once_ended CHECK (deleted_at IS NULL OR finished_at IS NOT NULL);

CREATE INDEX sweeps_deleted ON sweeps (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX sweeps_finished ON sweeps (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX events_created ON events (created_at);

CREATE TABLE output_removals (
    host_id    uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    attempt_id uuid NOT NULL,
    trial_id   uuid NOT NULL,
    asked_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host_id, attempt_id)
);
