-- Lost: everything.
DROP TABLE audit_log, api_tokens, idempotency_keys, outbox, events, log_chunks, metrics, shapes, footprints, leases,
    attempts, placement_requests, trials, sweeps, devices, hosts;
DROP SEQUENCE lease_tokens;
DROP SEQUENCE event_sequence;
