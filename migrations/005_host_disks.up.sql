-- A host whose disk is nearly full starts nothing new.
ALTER TABLE hosts
    ADD disk_free_bytes bigint NOT NULL DEFAULT 0,
    ADD disk_headroom_bytes bigint NOT NULL DEFAULT 0;
