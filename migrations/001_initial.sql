-- The schema. Rules for every table: times are timestamptz and come from the
-- database's clock; bytes are bigint; every invariant is a named CHECK. Documents
-- that Berth reads back are json, not jsonb, which would turn 1e15 into an integer.

CREATE SEQUENCE lease_tokens;

CREATE SEQUENCE event_sequence;

CREATE TABLE hosts (
    id                    uuid PRIMARY KEY,
    name                  text NOT NULL,
    boot_id               text NOT NULL,
    state                 text NOT NULL DEFAULT 'ready',
    cpu_milli             bigint NOT NULL,
    cpu_milli_reserved    bigint NOT NULL DEFAULT 0,
    memory_bytes          bigint NOT NULL,
    memory_headroom_bytes bigint NOT NULL,
    memory_reserved_bytes bigint NOT NULL DEFAULT 0,
    memory_free_bytes     bigint NOT NULL,
    max_attempts          integer NOT NULL DEFAULT 0,
    attempts              integer NOT NULL DEFAULT 0,
    version               text NOT NULL,
    registered_at         timestamptz NOT NULL DEFAULT now(),
    last_seen_at          timestamptz NOT NULL DEFAULT now(),
    -- Of the fullest disk that attempts write to. A host with less free than its headroom starts nothing new.
    disk_free_bytes       bigint NOT NULL DEFAULT 0,
    disk_headroom_bytes   bigint NOT NULL DEFAULT 0,
    -- A host that came back smaller than its leases reaches these totals as leases end. NULL = the totals above hold.
    cpu_milli_target      bigint,
    memory_bytes_target   bigint,
    max_attempts_target   integer,
    -- When an operator removed the host. It comes back when its worker reports
    -- later.
    removed_at            timestamptz,
    -- Consecutive trials whose containers the host failed to start, and their sweeps.
    failed_trials         uuid[] NOT NULL DEFAULT '{}',
    failed_sweeps         uuid[] NOT NULL DEFAULT '{}',
    failed_at             timestamptz,
    -- Too many of them cordon the host; at test_at it takes one test attempt.
    cordoned_at           timestamptz,
    cordon_reason         text NOT NULL DEFAULT '',
    tests                 integer NOT NULL DEFAULT 0,
    test_at               timestamptz,
    -- Two workers of one machine would sell its cores twice.
    machine_id            text NOT NULL DEFAULT '',
    data_dir              text NOT NULL DEFAULT '',
    -- Why a host whose worker answers takes no attempts; empty = it takes them.
    problem               text NOT NULL DEFAULT '',
    -- Size of the disk with outputs, the size of the outputs, and the used bytes at two marks, a day apart.
    disk_bytes            bigint NOT NULL DEFAULT 0,
    output_bytes          bigint NOT NULL DEFAULT 0,
    disk_mark_at          timestamptz,
    disk_mark_used_bytes  bigint NOT NULL DEFAULT 0,
    disk_day_at           timestamptz,
    disk_day_used_bytes   bigint NOT NULL DEFAULT 0,
    -- What a person must do about the host's files: removals that fail, a limit that cannot be kept.
    outputs_problem       text NOT NULL DEFAULT '',
    -- What the host had for attempts before it came back smaller, at shrunk_at: a trial that needs as much waits for a while.
    former_memory_bytes   bigint,
    former_cpu_milli      bigint,
    shrunk_at             timestamptz,
    stores_files          boolean NOT NULL DEFAULT false, -- its worker has a store
    -- Names of the data sets that its worker mounts.
    datasets              text[] NOT NULL DEFAULT '{}',
    -- Public parts of the keys with which a host's worker opens secrets.
    secret_keys           text[] NOT NULL DEFAULT '{}',
    stores_checkpoints    boolean NOT NULL DEFAULT false, -- its worker stores checkpoints
    CONSTRAINT hosts_state CHECK (state IN ('ready', 'draining')),
    CONSTRAINT hosts_cpu_within_capacity CHECK (0 <= cpu_milli_reserved AND cpu_milli_reserved <= cpu_milli),
    CONSTRAINT hosts_memory_within_capacity
        CHECK (0 <= memory_reserved_bytes AND memory_reserved_bytes <= memory_bytes - memory_headroom_bytes),
    CONSTRAINT hosts_attempts_within_limit CHECK (0 <= attempts AND (max_attempts = 0 OR attempts <= max_attempts)),
    CONSTRAINT hosts_removed_holds_nothing CHECK (removed_at IS NULL OR removed_at < last_seen_at OR attempts = 0),
    CONSTRAINT hosts_cordon_has_a_test CHECK ((cordoned_at IS NULL) = (test_at IS NULL))
);

CREATE INDEX hosts_machine ON hosts (machine_id) WHERE machine_id <> '';

CREATE TABLE devices (
    id                text PRIMARY KEY,
    host_id           uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    model             text NOT NULL,
    memory_bytes      bigint NOT NULL,
    headroom_bytes    bigint NOT NULL,
    reserved_bytes    bigint NOT NULL DEFAULT 0,
    free_bytes        bigint NOT NULL,
    max_contexts      integer NOT NULL,
    contexts_reserved integer NOT NULL DEFAULT 0,
    profile           text NOT NULL DEFAULT '', -- of a MIG device; empty = a whole GPU
    mode              text NOT NULL DEFAULT 'time_slicing', -- how the attempts on the device share it, or how the last ones did
    max_attempts      integer NOT NULL DEFAULT 0,
    problem           text NOT NULL DEFAULT '', -- why the device takes no attempts; empty = it takes them
    lost_at           timestamptz, -- since when its worker does not find it
    mps_contexts      integer NOT NULL DEFAULT 0, -- clients that its MPS daemon takes; 0 = it has none
    -- Why a device takes no clients of MPS now, though it has a daemon; empty = it takes them.
    mps_problem       text NOT NULL DEFAULT '',
    advice            json NOT NULL DEFAULT '{}', -- how many attempts should share it (berth.Advice)
    -- A person cordoned the device; only a person can uncordon it.
    cordoned_at       timestamptz,
    cordon_reason     text NOT NULL DEFAULT '',
    CONSTRAINT devices_memory_within_capacity
        CHECK (0 <= reserved_bytes AND reserved_bytes <= memory_bytes - headroom_bytes),
    CONSTRAINT devices_contexts_within_limit CHECK (0 <= contexts_reserved AND contexts_reserved <= max_contexts),
    CONSTRAINT devices_mode CHECK (mode IN ('exclusive', 'time_slicing', 'mps')),
    CONSTRAINT devices_max_attempts CHECK (max_attempts >= 0),
    CONSTRAINT devices_mps_contexts CHECK (mps_contexts >= 0),
    CONSTRAINT devices_cordon_has_a_time CHECK (cordoned_at IS NOT NULL OR cordon_reason = '')
);

CREATE INDEX devices_host ON devices (host_id);

CREATE TABLE sweeps (
    id                  uuid PRIMARY KEY,
    name                text NOT NULL,
    spec                json NOT NULL,
    image_digest        text NOT NULL,
    state               text NOT NULL DEFAULT 'pending',
    reason              text NOT NULL DEFAULT '',
    max_parallel        integer NOT NULL DEFAULT 0,
    planned             integer NOT NULL DEFAULT 0,
    created_by          text NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    -- Of the workflow. Temporal tells a run the ends of the trials that it started; the outbox tells it the
    -- ends of earlier runs' trials.
    run_id              text NOT NULL DEFAULT '',
    -- A deleted sweep is hidden at once; its rows go in small steps, its files when their hosts have read output_removals.
    deleted_at          timestamptz,
    outputs_removed_at  timestamptz,
    resumed_at          timestamptz, -- after a pause; limits on its age count from here
    note                text NOT NULL DEFAULT '', -- of a person
    -- Fields of the sweep file that statements read.
    resources           json NOT NULL GENERATED ALWAYS AS (coalesce(spec -> 'resources', '{}')) STORED,
    datasets            json NOT NULL GENERATED ALWAYS AS (coalesce(spec -> 'datasets', '[]')) STORED,
    secret_names        jsonb NOT NULL GENERATED ALWAYS AS (jsonb_path_query_array(coalesce(spec -> 'secrets', '[]')::jsonb, '$[*].name')) STORED,
    max_attempts        integer NOT NULL GENERATED ALWAYS AS (greatest((spec #>> '{retry,max_attempts}')::integer, 1)) STORED,
    template            text NOT NULL GENERATED ALWAYS AS (md5(image_digest || coalesce(spec ->> 'command', ''))) STORED, -- sweeps with the same run alike
    trial_limit         json NOT NULL GENERATED ALWAYS AS (coalesce(spec #> '{limits,max_trial_duration}', '"0s"')) STORED,
    metric              text NOT NULL GENERATED ALWAYS AS (coalesce(spec #>> '{objective,metric}', spec #>> '{objective,0,metric}', '')) STORED, -- of the first objective; empty = none
    is_try              boolean NOT NULL GENERATED ALWAYS AS (coalesce(spec #>> '{labels,berth/try}', '') = 'true' AND coalesce(spec #>> '{limits,max_trials}', '') = '1') STORED, -- of berth try; one that was made a sweep has more trials
    minimizes           boolean NOT NULL GENERATED ALWAYS AS (coalesce(spec #>> '{objective,goal}', spec #>> '{objective,0,goal}', '') = 'minimize') STORED,
    CONSTRAINT sweeps_state CHECK (state IN
        ('pending', 'running', 'paused', 'stopping', 'canceling', 'succeeded', 'failed', 'stopped', 'canceled')),
    CONSTRAINT sweeps_finished_iff_terminal
        CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'stopped', 'canceled'))),
    CONSTRAINT sweeps_max_parallel CHECK (max_parallel >= 0),
    CONSTRAINT sweeps_note CHECK (char_length(note) <= 1000),
    CONSTRAINT sweeps_deleted_once_ended CHECK (deleted_at IS NULL OR finished_at IS NOT NULL)
);

CREATE INDEX sweeps_newest ON sweeps (created_at DESC, id DESC);
CREATE INDEX sweeps_deleted ON sweeps (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX sweeps_finished ON sweeps (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX sweeps_by_name ON sweeps ((lower(name) COLLATE "C"), id);
CREATE INDEX sweeps_open ON sweeps (id) WHERE state IN ('pending', 'running');
CREATE INDEX sweeps_held ON sweeps (id) WHERE state IN ('paused', 'stopping', 'canceling');

CREATE TABLE shapes (
    key        text PRIMARY KEY,
    shape      json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    family     text NOT NULL DEFAULT '' -- of the shapes that differ in numbers only: measured ones predict the others
);

CREATE INDEX shapes_of_family ON shapes (family, created_at);

CREATE TABLE trials (
    id           uuid PRIMARY KEY,
    sweep_id     uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    number       integer NOT NULL,
    params       json NOT NULL,
    shape_key    text NOT NULL REFERENCES shapes (key),
    state        text NOT NULL DEFAULT 'pending',
    failure_kind text NOT NULL DEFAULT '',
    message      text NOT NULL DEFAULT '',
    value        double precision,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    finished_at  timestamptz,
    note         text NOT NULL DEFAULT '', -- of a person
    origin       json NOT NULL DEFAULT '{}', -- where its values come from
    results      json NOT NULL DEFAULT '{}', -- of a succeeded one by metric, in a sweep with further objectives or constraints
    stage_keys   text[] NOT NULL DEFAULT '{}', -- of its stages, in order
    stage_shapes text[] NOT NULL DEFAULT '{}', -- their shapes
    failed_stage text NOT NULL DEFAULT '', -- key of the stage in which it failed
    CONSTRAINT trials_stages CHECK (cardinality(stage_keys) = cardinality(stage_shapes)),
    CONSTRAINT trials_note CHECK (char_length(note) <= 1000),
    CONSTRAINT trials_number UNIQUE (sweep_id, number),
    CONSTRAINT trials_number_from_one CHECK (number >= 1),
    CONSTRAINT trials_state CHECK (state IN
        ('pending', 'probing', 'waiting', 'running', 'succeeded', 'failed', 'infeasible', 'canceled', 'pruned')),
    CONSTRAINT trials_finished_iff_terminal
        CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'infeasible', 'canceled', 'pruned'))),
    CONSTRAINT trials_value_only_when_succeeded CHECK (value IS NULL OR state = 'succeeded'),
    CONSTRAINT trials_value_finite
        CHECK (value IS NULL OR (value > '-Infinity'::double precision AND value < 'Infinity'::double precision))
);

CREATE INDEX trials_by_state ON trials (sweep_id, state);
CREATE INDEX trials_unfinished_shape ON trials (shape_key) WHERE finished_at IS NULL;
CREATE INDEX trials_by_value ON trials (sweep_id, value, number) WHERE value IS NOT NULL;
CREATE INDEX trials_by_duration ON trials (sweep_id, (finished_at - started_at), number) WHERE finished_at IS NOT NULL;
CREATE INDEX trials_noted ON trials (sweep_id) WHERE note <> '';
-- By their values: a random search asks which of its draws were tried. The digest keeps the index small.
CREATE INDEX trials_by_params ON trials (sweep_id, (md5(params::text)::uuid));
CREATE INDEX trials_failed_stage ON trials (sweep_id, failed_stage) WHERE failed_stage <> '';
CREATE INDEX trials_stages ON trials USING gin (stage_keys) WHERE stage_keys <> '{}';
CREATE INDEX trials_unfinished_stages ON trials USING gin (stage_keys) WHERE finished_at IS NULL AND stage_keys <> '{}';

-- What trials reported where early stopping judges them, and the answer: a retry, or a later attempt of the trial, gets the same.
CREATE TABLE rungs (
    trial_id uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    rung     bigint NOT NULL,
    sweep_id uuid NOT NULL,
    step     bigint NOT NULL,
    value    double precision, -- NULL = NaN or infinite
    stop     boolean NOT NULL,
    ended    boolean NOT NULL DEFAULT false, -- its attempt had ended: nothing was judged, others are compared with it
    why      text NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (trial_id, rung)
);

CREATE INDEX rungs_of_sweep ON rungs (sweep_id, rung);

-- Trials of earlier sweeps from which a search learns, copied when the sweep was submitted: the earlier sweep may be deleted.
CREATE TABLE priors (
    sweep_id uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    earlier  integer NOT NULL, -- of the named sweeps, from 0
    number   integer NOT NULL,
    params   json NOT NULL,
    state    text NOT NULL,
    loss     double precision, -- less is better; NULL = these values cannot work
    step     bigint NOT NULL,
    PRIMARY KEY (sweep_id, earlier, number)
);

CREATE TABLE placement_requests (
    attempt_id       uuid PRIMARY KEY,
    sweep_id         uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    trial_id         uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    workflow_id      text NOT NULL,
    number           integer NOT NULL,
    stage            text NOT NULL,
    purpose          text NOT NULL,
    shape_key        text NOT NULL,
    memory_bytes     bigint NOT NULL,
    cpu_milli        bigint NOT NULL,
    device_bytes     bigint NOT NULL DEFAULT 0,
    contexts         integer NOT NULL DEFAULT 0,
    exclusive        boolean NOT NULL DEFAULT false,
    expected_ns      bigint NOT NULL DEFAULT 0,
    state            text NOT NULL DEFAULT 'waiting',
    reasons          jsonb NOT NULL DEFAULT '[]',
    requested_at     timestamptz NOT NULL DEFAULT now(),
    decided_at       timestamptz,
    -- A request that the ledger refuses is tried again at not_before, so that it does not stop the others.
    tries            integer NOT NULL DEFAULT 0,
    refusal          text NOT NULL DEFAULT '',
    not_before       timestamptz NOT NULL DEFAULT now(),
    revives          uuid, -- the abandoned attempt that its host took back in place of the requested one; NULL = a new attempt
    short            boolean NOT NULL DEFAULT false, -- a short probe, whose container is thrown away
    last_oom         json, -- the trial's last out-of-memory; the placer sizes the request when it decides it
    exclusive_device boolean NOT NULL DEFAULT false,
    -- The host or GPU that the last round kept free for a request that has waited too long. No foreign key: hosts go without
    -- asking which requests wait for them.
    kept_host_id     uuid, -- NULL = none is kept
    kept_device_id   text, -- NULL = the whole host
    kept_since       timestamptz,
    CONSTRAINT placement_requests_state CHECK (state IN ('waiting', 'placed', 'withdrawn', 'impossible')),
    CONSTRAINT placement_requests_decided_iff_not_waiting CHECK ((decided_at IS NULL) = (state = 'waiting')),
    CONSTRAINT placement_requests_demand_positive CHECK (memory_bytes > 0 AND cpu_milli > 0 AND device_bytes >= 0 AND contexts >= 0),
    CONSTRAINT placement_requests_kept_is_whole
        CHECK ((kept_since IS NOT NULL) = (kept_host_id IS NOT NULL) AND (kept_device_id IS NULL OR kept_host_id IS NOT NULL))
);

CREATE INDEX placement_requests_waiting ON placement_requests (requested_at) WHERE state = 'waiting';
CREATE INDEX placement_requests_trial ON placement_requests (trial_id);
CREATE INDEX placement_requests_sweep ON placement_requests (sweep_id);
CREATE INDEX placement_requests_waiting_of_sweep ON placement_requests (sweep_id, requested_at, attempt_id) WHERE state = 'waiting';
CREATE INDEX placement_requests_retries ON placement_requests (sweep_id) WHERE state = 'waiting' AND number > 1;
-- Waiting requests that do not say yet that their sweep takes no trials (HoldRequests).
CREATE INDEX placement_requests_not_held ON placement_requests (sweep_id)
    WHERE state = 'waiting' AND reasons <> '[{"dimension": "sweep", "needed": 0, "free": 0, "reason": "the sweep takes no new trials now"}]';

CREATE TABLE attempts (
    id                    uuid PRIMARY KEY,
    trial_id              uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    number                integer NOT NULL,
    stage                 text NOT NULL,
    purpose               text NOT NULL,
    shape_key             text NOT NULL DEFAULT '', -- what its footprint is of
    state                 text NOT NULL DEFAULT 'placed',
    host_id               uuid NOT NULL REFERENCES hosts (id),
    device_id             text REFERENCES devices (id),
    token                 bigint NOT NULL,
    memory_bytes          bigint NOT NULL,
    cpu_milli             bigint NOT NULL,
    device_bytes          bigint NOT NULL DEFAULT 0,
    contexts              integer NOT NULL DEFAULT 0,
    exclusive             boolean NOT NULL DEFAULT false,
    container_id          text NOT NULL DEFAULT '',
    failure_kind          text NOT NULL DEFAULT '',
    message               text NOT NULL DEFAULT '',
    exit_code             integer,
    value                 double precision,
    results               json NOT NULL DEFAULT '{}', -- as of its trial
    memory_peak_bytes     bigint NOT NULL DEFAULT 0,
    device_peak_bytes     bigint NOT NULL DEFAULT 0,
    cpu_ns                bigint NOT NULL DEFAULT 0,
    wall_ns               bigint NOT NULL DEFAULT 0,
    samples               integer NOT NULL DEFAULT 0,
    oom_kills             integer NOT NULL DEFAULT 0,
    placed_at             timestamptz NOT NULL DEFAULT now(),
    started_at            timestamptz,
    finished_at           timestamptz,
    unseen_ns             bigint NOT NULL DEFAULT 0, -- part of wall_ns that was not measured
    refused               boolean NOT NULL DEFAULT false, -- by its host or its workflow: it is not given back to its host
    outputs_removed_at    timestamptz,
    outputs_removed_why   text NOT NULL DEFAULT '',
    device_class          text NOT NULL DEFAULT 'cpu',
    exclusive_device      boolean NOT NULL DEFAULT false,
    -- How busy the attempt kept its GPU, in thousandths; 0 = not measured.
    device_sm_milli       integer NOT NULL DEFAULT 0,
    device_dram_milli     integer NOT NULL DEFAULT 0,
    device_tensor_milli   integer NOT NULL DEFAULT 0,
    framework_peak_bytes  bigint NOT NULL DEFAULT 0, -- GPU memory, as the framework says; 0 = it does not
    device_fault          boolean NOT NULL DEFAULT false, -- its own program faulted on its GPU
    device_active_ns      bigint NOT NULL DEFAULT 0, -- how long its GPU's activity is known
    device_unknown_ns     bigint NOT NULL DEFAULT 0, -- and how long not
    -- The shapes beside which it ran on its GPU (berth.Pace).
    mix                   text NOT NULL DEFAULT '',
    mix_own               text NOT NULL DEFAULT '',
    spill_bytes           bigint NOT NULL DEFAULT 0, -- host memory for what its GPU cannot hold; 0 = no unified memory
    -- From the shim: how many training steps it timed and their mean; peaks of GPU memory before the first fit, in training and
    -- in validation. 0 = unknown.
    steps                 bigint NOT NULL DEFAULT 0,
    step_ns               bigint NOT NULL DEFAULT 0,
    start_peak_bytes      bigint NOT NULL DEFAULT 0,
    training_peak_bytes   bigint NOT NULL DEFAULT 0,
    validation_peak_bytes bigint NOT NULL DEFAULT 0,
    first_fit             jsonb, -- from the shim: digest, epochs and seconds of the first of several fits
    -- What became of the files that it wrote. A worker with a store takes pending ones.
    files_state           text NOT NULL DEFAULT 'pending',
    files_problem         text NOT NULL DEFAULT '', -- why they are not stored; pending: why the last try failed
    files_left_out        integer NOT NULL DEFAULT 0,
    files_tries           integer NOT NULL DEFAULT 0, -- that failed
    files_retry_at        timestamptz, -- NULL = at once
    files_settled_at      timestamptz, -- when they were stored, or given up
    -- Version by name of each data set that it found; an empty version is unknown.
    datasets              jsonb NOT NULL DEFAULT '{}',
    -- Where its value came from; empty = nothing reported the objective.
    metric_source         text NOT NULL DEFAULT '' CONSTRAINT attempts_metric_source CHECK (metric_source IN ('', 'file', 'stdout', 'tensorboard', 'shim')),
    -- Periods of 0.1 s in which its processes ran, and in how many its limit of cores held them back.
    cpu_periods           bigint NOT NULL DEFAULT 0,
    cpu_throttled         bigint NOT NULL DEFAULT 0,
    checkpoint_left       boolean NOT NULL DEFAULT false, -- it ended with files in /trial/checkpoint
    checkpoint_settled_at timestamptz, -- its host has stored them, or will not
    checkpoint_problem    text NOT NULL DEFAULT '', -- why it will not
    resumed               text NOT NULL DEFAULT '', -- from which checkpoint it went on, in plain words
    CONSTRAINT attempts_number UNIQUE (trial_id, number),
    CONSTRAINT attempts_state CHECK (state IN ('placed', 'running', 'finished', 'abandoned')),
    CONSTRAINT attempts_purpose CHECK (purpose IN ('run', 'probe')),
    CONSTRAINT attempts_finished_iff_ended CHECK ((finished_at IS NOT NULL) = (state IN ('finished', 'abandoned'))),
    CONSTRAINT attempts_outcome_iff_finished CHECK ((failure_kind <> '') = (state IN ('finished', 'abandoned'))),
    CONSTRAINT attempts_peaks_not_negative CHECK (memory_peak_bytes >= 0 AND device_peak_bytes >= 0 AND cpu_ns >= 0),
    CONSTRAINT attempts_outputs_removed_why CHECK ((outputs_removed_at IS NULL) = (outputs_removed_why = '')),
    CONSTRAINT attempts_spill_is_alone CHECK (spill_bytes = 0 OR spill_bytes > 0 AND exclusive_device AND spill_bytes <= memory_bytes),
    CONSTRAINT attempts_files_state CHECK (files_state IN ('pending', 'stored', 'lost', 'removed')),
    CONSTRAINT attempts_files_lost_why CHECK (files_state NOT IN ('lost', 'removed') OR files_problem <> ''),
    CONSTRAINT attempts_files_stored_once_finished CHECK (files_state <> 'stored' OR state = 'finished'),
    CONSTRAINT attempts_files_counts CHECK (files_left_out >= 0 AND files_tries >= 0),
    CONSTRAINT attempts_datasets_object CHECK (jsonb_typeof(datasets) = 'object'),
    CONSTRAINT attempts_cpu_throttled CHECK (0 <= cpu_throttled AND cpu_throttled <= cpu_periods)
);

CREATE INDEX attempts_of_shape ON attempts (shape_key, placed_at);
-- Invariant I1: at most one live attempt per trial, whatever its stage.
CREATE UNIQUE INDEX attempts_one_live ON attempts (trial_id) WHERE state IN ('placed', 'running');
CREATE INDEX attempts_out_of_memory ON attempts (trial_id) WHERE failure_kind IN ('host_oom', 'device_oom');
-- Each round of the placer reads these two: few of all attempts.
CREATE INDEX attempts_neighbour_fault ON attempts (trial_id) WHERE failure_kind = 'neighbour_fault';
CREATE INDEX attempts_device_fault ON attempts (trial_id) WHERE device_fault;
CREATE INDEX attempts_of_device ON attempts (device_id, finished_at) WHERE device_id IS NOT NULL;
CREATE INDEX attempts_files_pending ON attempts (host_id, finished_at) WHERE files_state = 'pending' AND state = 'finished';
CREATE INDEX attempts_checkpoint_coming ON attempts (host_id)
    WHERE checkpoint_left AND checkpoint_settled_at IS NULL AND state = 'finished';
CREATE INDEX attempts_of_host ON attempts (host_id, (coalesce(device_id, '')), finished_at);
CREATE INDEX attempts_with_outputs ON attempts (host_id, trial_id) WHERE outputs_removed_at IS NULL;

CREATE TABLE leases (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    attempt_id       uuid NOT NULL UNIQUE REFERENCES attempts (id) ON DELETE CASCADE,
    sweep_id         uuid NOT NULL,
    host_id          uuid NOT NULL REFERENCES hosts (id),
    device_id        text REFERENCES devices (id),
    memory_bytes     bigint NOT NULL,
    cpu_milli        bigint NOT NULL,
    device_bytes     bigint NOT NULL DEFAULT 0,
    contexts         integer NOT NULL DEFAULT 0,
    exclusive        boolean NOT NULL DEFAULT false,
    token            bigint NOT NULL UNIQUE DEFAULT nextval('lease_tokens'),
    state            text NOT NULL DEFAULT 'held',
    expires_at       timestamptz NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    released_at      timestamptz,
    proof            text NOT NULL DEFAULT '',
    exclusive_device boolean NOT NULL DEFAULT false,
    device_activity  integer NOT NULL DEFAULT 0, -- thousandths that its shape was measured to use when it was placed
    -- A round asks which shapes hold a lease on each GPU: joining attempts and trials took 90 ms (19,200 leases).
    shape_key        text NOT NULL DEFAULT '',
    CONSTRAINT leases_state CHECK (state IN ('held', 'suspect', 'released')),
    CONSTRAINT leases_released_with_proof CHECK ((state = 'released') = (released_at IS NOT NULL AND proof <> ''))
);

CREATE INDEX leases_unreleased ON leases (host_id) WHERE state <> 'released';
CREATE INDEX leases_unreleased_sweep ON leases (sweep_id) WHERE state <> 'released';
CREATE INDEX leases_unreleased_device ON leases (device_id) WHERE device_id IS NOT NULL AND state <> 'released';

-- Outputs of stages that trials share: the files of an attempt.
CREATE TABLE stage_outputs (
    key        text PRIMARY KEY,
    stage      text NOT NULL,
    attempt_id uuid NOT NULL UNIQUE REFERENCES attempts (id) ON DELETE CASCADE,
    made_at    timestamptz NOT NULL DEFAULT now()
);

-- Outputs on the host where their stage ran (there), with all files in the store (stored), or both. seen_at is when they were
-- last within reach. Each output's attempt is looked up by its id (OFFSET 0): a planner without statistics reads all attempts.
CREATE VIEW shared_outputs AS
SELECT o.key, o.attempt_id, w.host_id, w.last_seen_at, w.there, w.stored, CASE WHEN w.stored THEN 'infinity' ELSE w.last_seen_at END AS seen_at
FROM stage_outputs o CROSS JOIN LATERAL (
    SELECT h.id AS host_id, h.last_seen_at, s.deleted_at, a.files_state = 'stored' AND a.files_left_out = 0 AS stored,
        a.outputs_removed_at IS NULL AND (h.removed_at IS NULL OR h.removed_at < h.last_seen_at) AS there
    FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN sweeps s ON s.id = t.sweep_id JOIN hosts h ON h.id = a.host_id
    WHERE a.id = o.attempt_id OFFSET 0
) w
WHERE w.deleted_at IS NULL AND (w.there OR w.stored);

-- Outputs that an unfinished trial needs, or a container that has not ended for certain.
CREATE VIEW held_outputs AS
SELECT o.attempt_id, w.sweep_id FROM stage_outputs o JOIN attempts e ON e.id = o.attempt_id JOIN trials w ON w.id = e.trial_id
WHERE EXISTS (SELECT 1 FROM trials t WHERE t.stage_keys @> ARRAY[o.key] AND t.finished_at IS NULL AND t.stage_keys <> '{}')
    OR EXISTS (
        SELECT 1 FROM leases l JOIN attempts a ON a.id = l.attempt_id JOIN trials t ON t.id = a.trial_id
        WHERE l.state <> 'released' AND o.key = ANY (t.stage_keys));

CREATE TABLE footprints (
    shape_key          text PRIMARY KEY REFERENCES shapes (key),
    source             text NOT NULL,
    samples            integer NOT NULL DEFAULT 0,
    memory_peak_bytes  bigint NOT NULL DEFAULT 0,
    memory_floor_bytes bigint NOT NULL DEFAULT 0,
    device_peak_bytes  bigint NOT NULL DEFAULT 0,
    cpu_milli          bigint NOT NULL DEFAULT 0,
    duration_ns        bigint NOT NULL DEFAULT 0,
    measured_at        timestamptz NOT NULL DEFAULT now(),
    -- Siblings that succeeded since an out-of-memory raised the floor: enough of them lower it again.
    floor_passed       integer NOT NULL DEFAULT 0,
    CONSTRAINT footprints_source CHECK (source IN ('full', 'short', 'partial', 'raised', 'predicted')),
    CONSTRAINT footprints_not_negative
        CHECK (samples >= 0 AND memory_peak_bytes >= 0 AND memory_floor_bytes >= 0 AND device_peak_bytes >= 0)
);

CREATE TABLE metrics (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    name       text NOT NULL,
    step       bigint NOT NULL,
    value      double precision NOT NULL,
    status     text NOT NULL,
    final      boolean NOT NULL DEFAULT false,
    at         timestamptz NOT NULL,
    PRIMARY KEY (attempt_id, name, step),
    CONSTRAINT metrics_status CHECK (status IN ('finite', 'nan', 'infinity', '-infinity'))
);

CREATE TABLE log_chunks (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    "offset"   bigint NOT NULL,
    stream     text NOT NULL,
    at         timestamptz NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (attempt_id, "offset"),
    CONSTRAINT log_chunks_stream CHECK (stream IN ('stdout', 'stderr', 'berth'))
);

-- Events for pages and clients. Rows commit out of order, so one publisher
-- stamps sequence on committed rows, and readers follow sequence.
CREATE TABLE events (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sequence   bigint UNIQUE,
    kind       text NOT NULL,
    sweep_id   uuid,
    subject    text NOT NULL,
    data       jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX events_unstamped ON events (id) WHERE sequence IS NULL;
CREATE INDEX events_created ON events (created_at);

-- Messages for Temporal, written in the transaction that decided them.
CREATE TABLE outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL,
    workflow_id text NOT NULL,
    payload     jsonb NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    not_before  timestamptz NOT NULL DEFAULT now(),
    created_at  timestamptz NOT NULL DEFAULT now(),
    -- Why the last try failed; empty = there was none.
    last_error  text NOT NULL DEFAULT '',
    CONSTRAINT outbox_kind CHECK (kind IN ('start_sweep', 'placed', 'trial_finished'))
);

CREATE TABLE idempotency_keys (
    principal  text NOT NULL,
    route      text NOT NULL,
    key        text NOT NULL,
    body_hash  bytea NOT NULL,
    sweep_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (principal, route, key)
);

CREATE TABLE api_tokens (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name         text NOT NULL,
    prefix       text NOT NULL,
    hash         bytea NOT NULL UNIQUE,
    role         text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    CONSTRAINT api_tokens_role CHECK (role IN ('viewer', 'operator', 'admin')),
    CONSTRAINT api_tokens_hash_is_sha256 CHECK (length(hash) = 32)
);

CREATE TABLE audit_log (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT now(),
    actor  text NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    ip     text NOT NULL,
    result text NOT NULL
);

-- The digest that a host last found for an image, so that a sweep can be accepted while Temporal does not answer.
CREATE TABLE image_digests (
    ref         text PRIMARY KEY,
    digest      text NOT NULL,
    resolved_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT image_digests_not_empty CHECK (ref <> '' AND digest <> '')
);

-- Which installation this database belongs to. Temporal's namespace keeps the id, too: two installations never share a
-- namespace, and a namespace without the id has lost its workflows.
CREATE TABLE installation (
    only_row          boolean PRIMARY KEY DEFAULT true,
    id                uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at        timestamptz NOT NULL DEFAULT now(),
    temporal_bound_at timestamptz,
    alarm             text NOT NULL DEFAULT '',
    alarm_at          timestamptz,
    retention_problem text NOT NULL DEFAULT '', -- rows over a limit that a server cannot delete; empty = none
    -- Since when and why the rounds of a server's loop fail, by part of health; no key = they do not.
    failing_rounds    jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT installation_only_row CHECK (only_row),
    CONSTRAINT installation_alarm_has_time CHECK ((alarm <> '') = (alarm_at IS NOT NULL))
);

-- Files that hosts still have to remove. A host that does not know an attempt, because the database was restored from an
-- older copy, removes nothing.
CREATE TABLE output_removals (
    host_id    uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    attempt_id uuid NOT NULL,
    trial_id   uuid NOT NULL,
    asked_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host_id, attempt_id)
);

-- Sweeps whose image a host lacks, with the trials that could not start there. From test_at on the host takes only test
-- attempts of the sweep.
CREATE TABLE missing_images (
    host_id   uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    sweep_id  uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    trials    uuid[] NOT NULL,
    failed_at timestamptz NOT NULL,
    reason    text NOT NULL,
    tests     integer NOT NULL DEFAULT 0,
    test_at   timestamptz,
    PRIMARY KEY (host_id, sweep_id)
);

CREATE INDEX missing_images_sweep ON missing_images (sweep_id);

-- The measured need of a shape on a class of GPU; footprints has its need on a host's cores.
CREATE TABLE device_footprints (
    shape_key           text NOT NULL REFERENCES shapes (key),
    device_class        text NOT NULL,
    source              text NOT NULL,
    samples             integer NOT NULL DEFAULT 0,
    memory_peak_bytes   bigint NOT NULL DEFAULT 0,
    memory_floor_bytes  bigint NOT NULL DEFAULT 0,
    floor_passed        integer NOT NULL DEFAULT 0,
    device_peak_bytes   bigint NOT NULL DEFAULT 0,
    device_floor_bytes  bigint NOT NULL DEFAULT 0,
    device_passed       integer NOT NULL DEFAULT 0,
    cpu_milli           bigint NOT NULL DEFAULT 0,
    duration_ns         bigint NOT NULL DEFAULT 0,
    measured_at         timestamptz NOT NULL DEFAULT now(),
    device_sm_milli     integer NOT NULL DEFAULT 0,
    device_dram_milli   integer NOT NULL DEFAULT 0,
    device_tensor_milli integer NOT NULL DEFAULT 0,
    PRIMARY KEY (shape_key, device_class),
    CONSTRAINT device_footprints_class CHECK (device_class NOT IN ('', 'cpu')),
    CONSTRAINT device_footprints_source CHECK (source IN ('full', 'short', 'partial', 'raised', 'predicted')),
    CONSTRAINT device_footprints_not_negative
        CHECK (samples >= 0 AND memory_peak_bytes >= 0 AND memory_floor_bytes >= 0 AND floor_passed >= 0 AND device_peak_bytes >= 0
        AND device_floor_bytes >= 0 AND device_passed >= 0)
);

-- How attempts of a shape get on beside others on a GPU (berth.Pace).
CREATE TABLE paces (
    place      text NOT NULL,
    mix        text NOT NULL,
    shape_key  text NOT NULL,
    mode       text NOT NULL,
    at_once    integer NOT NULL,
    samples    integer NOT NULL,
    failed     integer NOT NULL,
    mean       double precision NOT NULL,
    variance   double precision NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shape_key, mix, place, mode, at_once),
    CONSTRAINT paces_measured CHECK (samples >= 0 AND failed >= 0 AND mean >= 0 AND variance >= 0 AND at_once > 0),
    CONSTRAINT paces_mode CHECK (mode IN ('time_slicing', 'mps'))
);

-- A browser that logged in with an API token. Its cookie holds 32 random bytes; only their SHA-256 is here.
CREATE TABLE sessions (
    hash       bytea PRIMARY KEY,
    token_id   uuid NOT NULL REFERENCES api_tokens (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_hash_is_sha256 CHECK (length(hash) = 32),
    CONSTRAINT sessions_end_after_they_begin CHECK (expires_at > created_at)
);

CREATE INDEX sessions_by_token ON sessions (token_id, created_at);

-- What an attempt held over time: the maximum in each of at most 500 intervals of its life. NULL = not measured.
CREATE TABLE memory_points (
    attempt_id   uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    at_second    integer NOT NULL, -- since the attempt's start, when the interval begins
    host_bytes   bigint,
    device_bytes bigint,
    sm_milli     integer, -- thousandths
    PRIMARY KEY (attempt_id, at_second),
    CONSTRAINT memory_points_second CHECK (at_second >= 0),
    CONSTRAINT memory_points_figures CHECK (host_bytes >= 0 AND device_bytes >= 0 AND sm_milli BETWEEN 0 AND 1000)
);

-- What each host and each GPU held over time: the maximum in each minute.
CREATE TABLE machine_points (
    host_id        uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    device_id      text NOT NULL DEFAULT '', -- empty = the host itself
    at             timestamptz NOT NULL, -- when the minute begins
    memory_bytes   bigint NOT NULL, -- total
    reserved_bytes bigint NOT NULL,
    measured_bytes bigint, -- sum of the attempts' use; NULL = none was measured
    others_bytes   bigint, -- used outside Berth; NULL = not measured
    activity_milli bigint, -- thousandths of the GPU's SMs that worked; NULL = not measured
    cpu_milli      bigint NOT NULL DEFAULT 0, -- reserved of a host
    attempts       integer NOT NULL,
    PRIMARY KEY (host_id, device_id, at)
);

CREATE INDEX machine_points_age ON machine_points (at);

-- Files of attempts in the store of artifacts. A row names an object before the object is stored, so that the
-- cleaner does not take the object for an unnamed one. The path is part of a key, hence its limit.
CREATE TABLE artifacts (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    path       text COLLATE "C" NOT NULL, -- below /trial/out
    bytes      bigint NOT NULL,
    sha256     bytea NOT NULL,
    stored_at  timestamptz, -- NULL = its object may not be there yet
    PRIMARY KEY (attempt_id, path),
    CONSTRAINT artifacts_path_is_below CHECK (octet_length(path) BETWEEN 1 AND 1024 AND path !~ '(^|/)(\.{0,2})(/|$)'),
    CONSTRAINT artifacts_bytes_not_negative CHECK (bytes >= 0),
    CONSTRAINT artifacts_sha256_is_whole CHECK (octet_length(sha256) = 32)
);

CREATE INDEX artifacts_sha256 ON artifacts (sha256);

-- The first that were not stored, and why; attempts.files_left_out counts all.
CREATE TABLE artifacts_left_out (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE,
    number     integer NOT NULL, -- from 1 in its attempt
    path       text NOT NULL, -- bytes that are not UTF-8 are replaced
    reason     text NOT NULL,
    PRIMARY KEY (attempt_id, number),
    CONSTRAINT artifacts_left_out_why CHECK (reason <> '')
);

-- Stores that bear this installation's mark. A store without it is not mounted: an empty directory is a mount point
-- without its disk.
CREATE TABLE artifact_stores (
    store     text PRIMARY KEY, -- file:// and the absolute path of a directory, else its URL without secrets
    marked_at timestamptz NOT NULL DEFAULT now()
);

-- Objects in the store that no row names, and since when that is known. A database that was restored from an old copy does
-- not know the objects of newer rows, so they have the whole grace.
CREATE TABLE artifacts_unnamed (
    sha256 bytea PRIMARY KEY,
    since  timestamptz NOT NULL DEFAULT now()
);

-- Secrets of trials, sealed by age. The private part of the key is a file outside the database.
CREATE TABLE secrets (
    name       text PRIMARY KEY,
    ciphertext bytea NOT NULL,
    key        text NOT NULL,
    version    integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL,
    CONSTRAINT secrets_have_a_name CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'),
    CONSTRAINT secrets_are_sealed CHECK (substring(ciphertext FOR 21) = 'age-encryption.org/v1'::bytea AND length(ciphertext) < 128 * 1024),
    CONSTRAINT secrets_are_sealed_to_a_key CHECK (key LIKE 'age1%'),
    CONSTRAINT secrets_have_versions CHECK (version > 0)
);

-- Images that a host has, by digest or ID, and whether it pulls others. The placer prefers a host that has the image; it
-- ignores rows that are some minutes old.
CREATE TABLE host_images (
    host_id uuid PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    images  text[] NOT NULL,
    pulls   boolean NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now()
);

-- Checkpoints in the store of artifacts, each one object, so that a trial goes on from its newest one on another
-- host. A row names its object before that is stored; a checkpoint counts from stored_at on.
CREATE TABLE checkpoints (
    attempt_id uuid NOT NULL REFERENCES attempts (id) ON DELETE CASCADE, -- that wrote it
    trial_id   uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    sha256     bytea NOT NULL,
    bytes      bigint NOT NULL,
    stored_at  timestamptz, -- NULL = its object may not be there yet
    PRIMARY KEY (attempt_id, sha256),
    CONSTRAINT checkpoints_bytes_not_negative CHECK (bytes >= 0),
    CONSTRAINT checkpoints_sha256_is_whole CHECK (octet_length(sha256) = 32)
);

CREATE INDEX checkpoints_trial ON checkpoints (trial_id);
CREATE INDEX checkpoints_sha256 ON checkpoints (sha256);

-- Whole sweep files, for display. A file may list 10,000 assignments and be 1 MiB long, and PostgreSQL reads
-- all of it for one field: sweeps.spec keeps the parts that running a trial needs (berth.Spec.Plan).
CREATE TABLE sweep_files (
    sweep_id uuid PRIMARY KEY REFERENCES sweeps (id) ON DELETE CASCADE,
    spec     json NOT NULL -- whole, as it was accepted
);

-- The assignments that a sweep tries first, with the values that the search adds to them: trial n has number n.
CREATE TABLE sweep_entries (
    sweep_id uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    number   integer NOT NULL,
    params   json NOT NULL,
    PRIMARY KEY (sweep_id, number),
    CONSTRAINT sweep_entries_number_is_positive CHECK (number > 0)
);

CREATE VIEW class_footprints AS
SELECT shape_key, 'cpu'::text AS device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    0::bigint AS device_floor_bytes, 0 AS device_passed, cpu_milli, duration_ns, measured_at,
    0 AS device_sm_milli, 0 AS device_dram_milli, 0 AS device_tensor_milli
FROM footprints
UNION ALL
SELECT shape_key, device_class, source, samples, memory_peak_bytes, memory_floor_bytes, floor_passed, device_peak_bytes,
    device_floor_bytes, device_passed, cpu_milli, duration_ns, measured_at,
    device_sm_milli, device_dram_milli, device_tensor_milli
FROM device_footprints;

-- How many of its oldest requests each sweep that takes trials offers to the placer: the number that its
-- max_parallel lets start and a few (8) more, at most a window (500, berth.MaxOpenTrials), so that no sweep
-- hides the others' requests. A sweep at its max_parallel offers one request, which shows that reason.
-- Suspect leases, such as those of a lost host, keep nothing back here: the round decides. A retry is the
-- newest request, and the place of an abandoned attempt is kept for it: while a retry waits and an attempt is
-- abandoned, the sweep offers a window.
CREATE VIEW sweep_offers AS
SELECT s.id AS sweep_id, (CASE
    WHEN s.max_parallel = 0 THEN 500
    WHEN EXISTS (SELECT 1 FROM placement_requests w WHERE w.sweep_id = s.id AND w.state = 'waiting' AND w.number > 1)
        AND EXISTS (SELECT 1 FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE l.sweep_id = s.id AND l.state <> 'released' AND a.state = 'abandoned') THEN 500
    ELSE (SELECT CASE WHEN count(*) < s.max_parallel THEN least(500, s.max_parallel - count(*) + 8) ELSE 1 END
        FROM leases l WHERE l.sweep_id = s.id AND l.state = 'held')
END)::integer AS offer
FROM sweeps s
WHERE s.state IN ('pending', 'running') AND EXISTS (SELECT 1 FROM placement_requests r WHERE r.sweep_id = s.id AND r.state = 'waiting');

-- Pages learn when a host or a GPU takes attempts, takes none, or gives a reason. A dozen statements change
-- that, so triggers announce it. A worker's round without such a change writes nothing.
CREATE FUNCTION announce_host() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (kind, subject, data) VALUES ('host.state', NEW.id::text, jsonb_build_object(
        'state', NEW.state, 'problem', NEW.problem, 'cordoned', NEW.cordoned_at IS NOT NULL,
        'removed', coalesce(NEW.removed_at >= NEW.last_seen_at, false)));
    PERFORM pg_notify('berth_events', '');
    RETURN NULL;
END $$;

CREATE FUNCTION announce_device() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (kind, subject, data) VALUES ('device.state', NEW.id, jsonb_build_object(
        'host_id', NEW.host_id, 'mode', NEW.mode, 'problem', NEW.problem, 'mps_problem', NEW.mps_problem,
        'cordoned', NEW.cordoned_at IS NOT NULL, 'lost', NEW.lost_at IS NOT NULL));
    PERFORM pg_notify('berth_events', '');
    RETURN NULL;
END $$;

CREATE TRIGGER hosts_announce_new AFTER INSERT ON hosts FOR EACH ROW EXECUTE FUNCTION announce_host();
CREATE TRIGGER hosts_announce AFTER UPDATE ON hosts FOR EACH ROW
    WHEN ((OLD.state, OLD.problem, OLD.cordoned_at IS NULL, OLD.boot_id, coalesce(OLD.removed_at >= OLD.last_seen_at, false))
        IS DISTINCT FROM (NEW.state, NEW.problem, NEW.cordoned_at IS NULL, NEW.boot_id, coalesce(NEW.removed_at >= NEW.last_seen_at, false)))
    EXECUTE FUNCTION announce_host();
CREATE TRIGGER devices_announce_new AFTER INSERT ON devices FOR EACH ROW EXECUTE FUNCTION announce_device();
CREATE TRIGGER devices_announce AFTER UPDATE ON devices FOR EACH ROW
    WHEN ((OLD.host_id, OLD.mode, OLD.problem, OLD.mps_problem, OLD.cordoned_at IS NULL, OLD.cordon_reason, OLD.lost_at IS NULL)
        IS DISTINCT FROM (NEW.host_id, NEW.mode, NEW.problem, NEW.mps_problem, NEW.cordoned_at IS NULL, NEW.cordon_reason, NEW.lost_at IS NULL))
    EXECUTE FUNCTION announce_device();
INSERT INTO installation DEFAULT VALUES;
