ALTER TABLE placement_requests DROP revives;
ALTER TABLE hosts DROP problem;
