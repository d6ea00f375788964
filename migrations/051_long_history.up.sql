-- By their values: a random search asks which of its draws were tried. The digest keeps the index small.
CREATE INDEX trials_by_params ON trials (sweep_id, (md5(params::text)::uuid));

-- As before, but what a lost host holds keeps nothing back, as in a round, and a sweep whose max_parallel lets nothing start offers one request, which says so: a round read nine of each.
CREATE OR REPLACE VIEW sweep_offers AS
SELECT s.id AS sweep_id, (CASE
    WHEN s.max_parallel = 0 THEN 500
    WHEN EXISTS (SELECT 1 FROM placement_requests w WHERE w.sweep_id = s.id AND w.state = 'waiting' AND w.number > 1)
        AND EXISTS (SELECT 1 FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE l.sweep_id = s.id AND l.state <> 'released' AND a.state = 'abandoned') THEN 500
    ELSE (SELECT CASE WHEN count(*) < s.max_parallel THEN least(500, s.max_parallel - count(*) + 8) ELSE 1 END
        FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE l.sweep_id = s.id AND l.state <> 'released' AND a.state <> 'abandoned')
END)::integer AS offer
FROM sweeps s
WHERE s.state IN ('pending', 'running') AND EXISTS (SELECT 1 FROM placement_requests r WHERE r.sweep_id = s.id AND r.state = 'waiting');
