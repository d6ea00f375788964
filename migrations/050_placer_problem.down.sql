-- Lost: why the rounds of the placer fail, which the next failing round says again.
ALTER TABLE installation DROP COLUMN placer_problem;
