-- problem says why a host whose worker answers takes no attempts; empty = it takes them.
ALTER TABLE hosts ADD problem text NOT NULL DEFAULT '';
-- revives is the abandoned attempt that its host took back in place of the requested one; null = a new attempt.
ALTER TABLE placement_requests ADD revives uuid;
-- short says that the attempt is a short probe, which is thrown away.
ALTER TABLE placement_requests ADD short boolean NOT NULL DEFAULT false;
-- refused says that the attempt's host, or its workflow, wants no more of it: it is not given back to its host.
ALTER TABLE attempts ADD refused boolean NOT NULL DEFAULT false;
