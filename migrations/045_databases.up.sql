-- Which database is the installation's own, and then those that it has replaced, newest first: cluster and database, as
-- Store.Installation names them. A dump carries them, so that a restored copy knows whose it is, and what it replaces. A version
-- before this one leaves them as they are.
ALTER TABLE installation ADD COLUMN IF NOT EXISTS databases text[]; -- NULL = not known
