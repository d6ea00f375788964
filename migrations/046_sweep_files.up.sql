-- A sweep file may list 10,000 assignments and be 1 MiB long, and PostgreSQL reads all of it to answer for one of its fields. So the
-- file has a table of its own, for those who ask to see it; sweeps.spec keeps what running a trial needs of it (berth.Spec.Plan), the
-- listed assignments are rows, and the fields that statements read are columns.
CREATE TABLE IF NOT EXISTS sweep_files (
    sweep_id uuid PRIMARY KEY REFERENCES sweeps (id) ON DELETE CASCADE,
    spec     json NOT NULL -- whole, as it was accepted
);

INSERT INTO sweep_files (sweep_id, spec) SELECT id, spec FROM sweeps ON CONFLICT DO NOTHING;

-- The assignments that a sweep tries first, with the values that the search adds to them: trial n has number n.
CREATE TABLE IF NOT EXISTS sweep_entries (
    sweep_id uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    number   integer NOT NULL,
    params   json NOT NULL,
    PRIMARY KEY (sweep_id, number),
    CONSTRAINT sweep_entries_number_is_positive CHECK (number > 0)
);

ALTER TABLE sweeps
    ADD COLUMN IF NOT EXISTS resources json NOT NULL GENERATED ALWAYS AS (coalesce(spec -> 'resources', '{}')) STORED,
    ADD COLUMN IF NOT EXISTS datasets json NOT NULL GENERATED ALWAYS AS (coalesce(spec -> 'datasets', '[]')) STORED,
    ADD COLUMN IF NOT EXISTS secret_names jsonb NOT NULL GENERATED ALWAYS AS (jsonb_path_query_array(coalesce(spec -> 'secrets', '[]')::jsonb, '$[*].name')) STORED,
    ADD COLUMN IF NOT EXISTS max_attempts integer NOT NULL GENERATED ALWAYS AS (greatest((spec #>> '{retry,max_attempts}')::integer, 1)) STORED,
    ADD COLUMN IF NOT EXISTS template text NOT NULL GENERATED ALWAYS AS (md5(image_digest || coalesce(spec ->> 'command', ''))) STORED, -- sweeps with the same run alike
    ADD COLUMN IF NOT EXISTS trial_limit json NOT NULL GENERATED ALWAYS AS (coalesce(spec #> '{limits,max_trial_duration}', '"0s"')) STORED,
    ADD COLUMN IF NOT EXISTS metric text NOT NULL GENERATED ALWAYS AS (coalesce(spec #>> '{objective,metric}', '')) STORED, -- of the objective; empty = none
    ADD COLUMN IF NOT EXISTS minimizes boolean NOT NULL GENERATED ALWAYS AS (coalesce(spec #>> '{objective,goal}', '') = 'minimize') STORED;

-- A round asks which shapes hold a lease on each GPU: joining all leases with attempts and trials took it 90 ms (19,200 leases).
ALTER TABLE leases ADD COLUMN IF NOT EXISTS shape_key text NOT NULL DEFAULT '';

UPDATE leases l SET shape_key = t.shape_key FROM attempts a JOIN trials t ON t.id = a.trial_id
WHERE a.id = l.attempt_id AND l.state <> 'released' AND l.shape_key = '';

-- What rounds, reports and deletions look up in tables that grow with history.
CREATE INDEX IF NOT EXISTS leases_unreleased_device ON leases (device_id) WHERE device_id IS NOT NULL AND state <> 'released';
CREATE INDEX IF NOT EXISTS attempts_of_host ON attempts (host_id, (coalesce(device_id, '')), finished_at);
CREATE INDEX IF NOT EXISTS attempts_with_outputs ON attempts (host_id, trial_id) WHERE outputs_removed_at IS NULL;
CREATE INDEX IF NOT EXISTS trials_of_shape ON trials (shape_key, created_at);
CREATE INDEX IF NOT EXISTS placement_requests_sweep ON placement_requests (sweep_id);
CREATE INDEX IF NOT EXISTS placement_requests_waiting_of_sweep ON placement_requests (sweep_id, requested_at, attempt_id) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS placement_requests_retries ON placement_requests (sweep_id) WHERE state = 'waiting' AND number > 1;
CREATE INDEX IF NOT EXISTS sweeps_open ON sweeps (id) WHERE state IN ('pending', 'running');
CREATE INDEX IF NOT EXISTS sweeps_held ON sweeps (id) WHERE state IN ('paused', 'stopping', 'canceling');

-- Waiting requests that do not say yet that their sweep takes no trials (HoldRequests): those that say so are read no more.
CREATE INDEX IF NOT EXISTS placement_requests_not_held ON placement_requests (sweep_id)
    WHERE state = 'waiting' AND reasons <> '[{"dimension": "sweep", "needed": 0, "free": 0, "reason": "the sweep takes no new trials now"}]';

-- How many of its oldest requests each sweep that takes trials offers to the placer: what its max_parallel lets start and a few (8),
-- or a whole window (500, berth.MaxOpenTrials), so that no sweep hides the requests of others. The places of abandoned attempts are
-- kept for their retries, which are the newest requests: while a retry waits and an attempt is abandoned, all are offered.
CREATE OR REPLACE VIEW sweep_offers AS
SELECT s.id AS sweep_id, (CASE
    WHEN s.max_parallel = 0 THEN 500
    WHEN EXISTS (SELECT 1 FROM placement_requests w WHERE w.sweep_id = s.id AND w.state = 'waiting' AND w.number > 1)
        AND EXISTS (SELECT 1 FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE l.sweep_id = s.id AND l.state <> 'released' AND a.state = 'abandoned') THEN 500
    ELSE least(500, greatest(s.max_parallel - (SELECT count(*) FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released'), 0) + 8)
END)::integer AS offer
FROM sweeps s
WHERE s.state IN ('pending', 'running') AND EXISTS (SELECT 1 FROM placement_requests r WHERE r.sweep_id = s.id AND r.state = 'waiting');
