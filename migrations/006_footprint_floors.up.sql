-- An out-of-memory raises what siblings of a shape reserve only until enough of
-- them have succeeded since. A run of which a part was not measured says so.
ALTER TABLE footprints ADD floor_passed integer NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD unseen_ns bigint NOT NULL DEFAULT 0;
