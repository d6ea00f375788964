ALTER TABLE attempts DROP unseen_ns;
ALTER TABLE footprints DROP floor_passed;
