-- Lost: why hosts take no attempts, and which requests were answered with an attempt that its host took back.
ALTER TABLE placement_requests DROP short;
ALTER TABLE placement_requests DROP revives;
ALTER TABLE hosts DROP problem;
ALTER TABLE attempts DROP refused;
