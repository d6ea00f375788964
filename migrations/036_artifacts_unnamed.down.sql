-- Lost: since when objects in the store of artifacts have no name. --artifacts-grace begins anew.
DROP TABLE artifacts_unnamed;
