-- Lost: which devices take no clients of MPS now; the next heartbeats of their workers tell.
ALTER TABLE devices DROP COLUMN mps_problem;
