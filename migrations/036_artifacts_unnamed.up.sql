-- Objects in the store of artifacts that no row of artifacts names, and since when that is known. A database that was restored
-- from an old copy does not know the objects of newer rows yet, so they have the whole grace.
CREATE TABLE artifacts_unnamed (
    sha256 bytea PRIMARY KEY,
    since  timestamptz NOT NULL DEFAULT now()
);
