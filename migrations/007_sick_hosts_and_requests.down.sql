-- Lost: why requests are set aside, which hosts are cordoned or removed, and totals that a host is to fall to.
ALTER TABLE hosts
    DROP CONSTRAINT hosts_cordon_has_a_test, DROP CONSTRAINT hosts_removed_holds_nothing,
    DROP cpu_milli_target, DROP memory_bytes_target, DROP max_attempts_target, DROP removed_at,
    DROP failed_trials, DROP failed_sweeps, DROP failed_at, DROP cordoned_at, DROP cordon_reason, DROP tests, DROP test_at;

ALTER TABLE placement_requests DROP tries, DROP refusal, DROP not_before;
