-- failing_rounds says since when and why the rounds of a server's loop fail, by the part of health; no key = they do not.
ALTER TABLE installation DROP COLUMN IF EXISTS placer_problem, ADD COLUMN IF NOT EXISTS failing_rounds jsonb NOT NULL DEFAULT '{}';
