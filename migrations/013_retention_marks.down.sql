-- Lost: what hosts say of files that cannot be removed.
ALTER TABLE hosts DROP COLUMN outputs_problem;
