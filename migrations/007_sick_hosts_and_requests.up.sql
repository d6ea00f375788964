-- A request that the ledger refuses is set aside and tried again later, so that it does not stop the others.
ALTER TABLE placement_requests
    ADD tries integer NOT NULL DEFAULT 0,
    ADD refusal text NOT NULL DEFAULT '',
    ADD not_before timestamptz NOT NULL DEFAULT now();

ALTER TABLE hosts
    -- The totals of a host that came back smaller than its leases: reached as they end. NULL = the totals themselves.
    ADD cpu_milli_target bigint,
    ADD memory_bytes_target bigint,
    ADD max_attempts_target integer,
    -- An operator said that the host is gone. It is back once its worker was seen later.
    ADD removed_at timestamptz,
    -- Trials whose containers the host failed to start, one after the other, and their sweeps.
    ADD failed_trials uuid[] NOT NULL DEFAULT '{}',
    ADD failed_sweeps uuid[] NOT NULL DEFAULT '{}',
    ADD failed_at timestamptz,
    -- Too many of them cordon the host, but for one test attempt at test_at.
    ADD cordoned_at timestamptz,
    ADD cordon_reason text NOT NULL DEFAULT '',
    ADD tests integer NOT NULL DEFAULT 0,
    ADD test_at timestamptz,
    ADD CONSTRAINT hosts_removed_holds_nothing CHECK (removed_at IS NULL OR removed_at < last_seen_at OR attempts = 0),
    ADD CONSTRAINT hosts_cordon_has_a_test CHECK ((cordoned_at IS NULL) = (test_at IS NULL));
