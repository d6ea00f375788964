-- Lost: why rounds fail, which the next failing round says again.
ALTER TABLE installation DROP COLUMN IF EXISTS failing_rounds, ADD COLUMN IF NOT EXISTS placer_problem text NOT NULL DEFAULT '';
