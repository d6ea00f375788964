-- The first schema. Rules every table follows: times are timestamptz and come
-- from the database's clock; bytes are bigint; every invariant is a named CHECK. Documents
-- that are read back are json, not jsonb, which would turn 1e15 into an integer.

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
    CONSTRAINT hosts_state CHECK (state IN ('ready', 'draining')),
    CONSTRAINT hosts_cpu_within_capacity CHECK (0 <= cpu_milli_reserved AND cpu_milli_reserved <= cpu_milli),
    CONSTRAINT hosts_memory_within_capacity
        CHECK (0 <= memory_reserved_bytes AND memory_reserved_bytes <= memory_bytes - memory_headroom_bytes),
    CONSTRAINT hosts_attempts_within_limit CHECK (0 <= attempts AND (max_attempts = 0 OR attempts <= max_attempts))
);

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
    CONSTRAINT devices_memory_within_capacity
        CHECK (0 <= reserved_bytes AND reserved_bytes <= memory_bytes - headroom_bytes),
    CONSTRAINT devices_contexts_within_limit CHECK (0 <= contexts_reserved AND contexts_reserved <= max_contexts)
);

CREATE INDEX devices_host ON devices (host_id);

CREATE TABLE sweeps (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    spec         json NOT NULL,
    image_digest text NOT NULL,
    state        text NOT NULL DEFAULT 'pending',
    reason       text NOT NULL DEFAULT '',
    max_parallel integer NOT NULL DEFAULT 0,
    planned      integer NOT NULL DEFAULT 0,
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    finished_at  timestamptz,
    CONSTRAINT sweeps_state CHECK (state IN
        ('pending', 'running', 'paused', 'stopping', 'canceling', 'succeeded', 'failed', 'stopped', 'canceled')),
    CONSTRAINT sweeps_finished_iff_terminal
        CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'stopped', 'canceled'))),
    CONSTRAINT sweeps_max_parallel CHECK (max_parallel >= 0)
);

CREATE INDEX sweeps_newest ON sweeps (created_at DESC, id DESC);

CREATE TABLE shapes (
    key        text PRIMARY KEY,
    shape      json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

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
    CONSTRAINT trials_number UNIQUE (sweep_id, number),
    CONSTRAINT trials_number_from_one CHECK (number >= 1),
    CONSTRAINT trials_state CHECK (state IN
        ('pending', 'probing', 'waiting', 'running', 'succeeded', 'failed', 'infeasible', 'canceled')),
    CONSTRAINT trials_finished_iff_terminal
        CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'infeasible', 'canceled'))),
    CONSTRAINT trials_value_only_when_succeeded CHECK (value IS NULL OR state = 'succeeded'),
    CONSTRAINT trials_value_finite
        CHECK (value IS NULL OR (value > '-Infinity'::double precision AND value < 'Infinity'::double precision))
);

CREATE INDEX trials_by_state ON trials (sweep_id, state);
CREATE INDEX trials_unfinished_shape ON trials (shape_key) WHERE finished_at IS NULL;

CREATE SEQUENCE lease_tokens;

CREATE TABLE placement_requests (
    attempt_id   uuid PRIMARY KEY,
    sweep_id     uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    trial_id     uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    workflow_id  text NOT NULL,
    number       integer NOT NULL,
    stage        text NOT NULL,
    purpose      text NOT NULL,
    shape_key    text NOT NULL,
    memory_bytes bigint NOT NULL,
    cpu_milli    bigint NOT NULL,
    device_bytes bigint NOT NULL DEFAULT 0,
    contexts     integer NOT NULL DEFAULT 0,
    exclusive    boolean NOT NULL DEFAULT false,
    expected_ns  bigint NOT NULL DEFAULT 0,
    state        text NOT NULL DEFAULT 'waiting',
    reasons      jsonb NOT NULL DEFAULT '[]',
    requested_at timestamptz NOT NULL DEFAULT now(),
    decided_at   timestamptz,
    CONSTRAINT placement_requests_state CHECK (state IN ('waiting', 'placed', 'withdrawn', 'impossible')),
    CONSTRAINT placement_requests_decided_iff_not_waiting CHECK ((decided_at IS NULL) = (state = 'waiting')),
    CONSTRAINT placement_requests_demand_positive CHECK (memory_bytes > 0 AND cpu_milli > 0 AND device_bytes >= 0 AND contexts >= 0)
);

CREATE INDEX placement_requests_waiting ON placement_requests (requested_at) WHERE state = 'waiting';
CREATE INDEX placement_requests_trial ON placement_requests (trial_id);

CREATE TABLE attempts (
    id                uuid PRIMARY KEY,
    trial_id          uuid NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    number            integer NOT NULL,
    stage             text NOT NULL,
    purpose           text NOT NULL,
    state             text NOT NULL DEFAULT 'placed',
    host_id           uuid NOT NULL REFERENCES hosts (id),
    device_id         text REFERENCES devices (id),
    token             bigint NOT NULL,
    memory_bytes      bigint NOT NULL,
    cpu_milli         bigint NOT NULL,
    device_bytes      bigint NOT NULL DEFAULT 0,
    contexts          integer NOT NULL DEFAULT 0,
    exclusive         boolean NOT NULL DEFAULT false,
    container_id      text NOT NULL DEFAULT '',
    failure_kind      text NOT NULL DEFAULT '',
    message           text NOT NULL DEFAULT '',
    exit_code         integer,
    value             double precision,
    memory_peak_bytes bigint NOT NULL DEFAULT 0,
    device_peak_bytes bigint NOT NULL DEFAULT 0,
    cpu_ns            bigint NOT NULL DEFAULT 0,
    wall_ns           bigint NOT NULL DEFAULT 0,
    samples           integer NOT NULL DEFAULT 0,
    oom_kills         integer NOT NULL DEFAULT 0,
    placed_at         timestamptz NOT NULL DEFAULT now(),
    started_at        timestamptz,
    finished_at       timestamptz,
    CONSTRAINT attempts_number UNIQUE (trial_id, stage, number),
    CONSTRAINT attempts_state CHECK (state IN ('placed', 'running', 'finished', 'abandoned')),
    CONSTRAINT attempts_purpose CHECK (purpose IN ('run', 'probe')),
    CONSTRAINT attempts_finished_iff_ended CHECK ((finished_at IS NOT NULL) = (state IN ('finished', 'abandoned'))),
    CONSTRAINT attempts_outcome_iff_finished CHECK ((failure_kind <> '') = (state IN ('finished', 'abandoned'))),
    CONSTRAINT attempts_peaks_not_negative CHECK (memory_peak_bytes >= 0 AND device_peak_bytes >= 0 AND cpu_ns >= 0)
);

-- Invariant I1: at most one live attempt per trial and stage.
CREATE UNIQUE INDEX attempts_one_live ON attempts (trial_id, stage) WHERE state IN ('placed', 'running');

CREATE TABLE leases (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    attempt_id   uuid NOT NULL UNIQUE REFERENCES attempts (id) ON DELETE CASCADE,
    sweep_id     uuid NOT NULL,
    host_id      uuid NOT NULL REFERENCES hosts (id),
    device_id    text REFERENCES devices (id),
    memory_bytes bigint NOT NULL,
    cpu_milli    bigint NOT NULL,
    device_bytes bigint NOT NULL DEFAULT 0,
    contexts     integer NOT NULL DEFAULT 0,
    exclusive    boolean NOT NULL DEFAULT false,
    token        bigint NOT NULL UNIQUE DEFAULT nextval('lease_tokens'),
    state        text NOT NULL DEFAULT 'held',
    expires_at   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    released_at  timestamptz,
    proof        text NOT NULL DEFAULT '',
    CONSTRAINT leases_state CHECK (state IN ('held', 'suspect', 'released')),
    CONSTRAINT leases_released_with_proof CHECK ((state = 'released') = (released_at IS NOT NULL AND proof <> ''))
);

CREATE INDEX leases_unreleased ON leases (host_id) WHERE state <> 'released';
CREATE INDEX leases_unreleased_sweep ON leases (sweep_id) WHERE state <> 'released';

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
    CONSTRAINT footprints_source CHECK (source IN ('full', 'short', 'partial', 'raised')),
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

-- What the user interfaces are told. Rows commit out of order, so the one
-- publisher stamps sequence on committed rows, and readers follow sequence.
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
CREATE SEQUENCE event_sequence;

-- What Temporal still has to be told, written in the transaction that decided it.
CREATE TABLE outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL,
    workflow_id text NOT NULL,
    payload     jsonb NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    not_before  timestamptz NOT NULL DEFAULT now(),
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT outbox_kind CHECK (kind IN ('start_sweep', 'placed', 'cancel_trial'))
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
