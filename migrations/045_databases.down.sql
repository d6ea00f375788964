-- Lost: which database is the installation's own, and which it has replaced. Data directories of workers keep their own note of it.
ALTER TABLE installation DROP COLUMN IF EXISTS databases;
