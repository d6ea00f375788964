-- Lost: nothing but time.
DROP INDEX trials_by_params;

CREATE OR REPLACE VIEW sweep_offers AS
SELECT s.id AS sweep_id, (CASE
    WHEN s.max_parallel = 0 THEN 500
    WHEN EXISTS (SELECT 1 FROM placement_requests w WHERE w.sweep_id = s.id AND w.state = 'waiting' AND w.number > 1)
        AND EXISTS (SELECT 1 FROM leases l JOIN attempts a ON a.id = l.attempt_id WHERE l.sweep_id = s.id AND l.state <> 'released' AND a.state = 'abandoned') THEN 500
    ELSE least(500, greatest(s.max_parallel - (SELECT count(*) FROM leases l WHERE l.sweep_id = s.id AND l.state <> 'released'), 0) + 8)
END)::integer AS offer
FROM sweeps s
WHERE s.state IN ('pending', 'running') AND EXISTS (SELECT 1 FROM placement_requests r WHERE r.sweep_id = s.id AND r.state = 'waiting');
