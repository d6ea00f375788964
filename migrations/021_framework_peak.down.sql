-- Lost: what frameworks said of themselves. Nothing is sized by it.
ALTER TABLE attempts DROP COLUMN framework_peak_bytes;
