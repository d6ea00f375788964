-- problem says why a host whose worker answers takes no attempts; empty = it takes them.
ALTER TABLE hosts ADD problem text NOT NULL DEFAULT '';
-- revives is the abandoned attempt that its host took back in place of the requested one; null = a new attempt.
ALTER TABLE placement_requests ADD revives uuid;
