-- Lost: which devices can be shared by MPS.
ALTER TABLE devices DROP COLUMN mps_contexts;
