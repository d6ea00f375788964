-- Why a message was not delivered at the last try; empty when it was not tried.
ALTER TABLE outbox ADD last_error text NOT NULL DEFAULT '';

-- The oldest schema version that a berth must know to work on this schema. Steps are additive, so an older berth may run
-- on a newer schema. A later step that takes away what an older berth needs inserts (its number, the oldest version that
-- can do without), and its down file deletes that row.
CREATE TABLE schema_compat (
    version     bigint PRIMARY KEY,
    min_version bigint NOT NULL,
    CONSTRAINT schema_compat_looks_back CHECK (0 < min_version AND min_version <= version)
);
INSERT INTO schema_compat (version, min_version) VALUES (10, 5);
