-- Lost: how far shapes have recovered from an out-of-memory, and how much of an attempt was not measured.
ALTER TABLE attempts DROP unseen_ns;
ALTER TABLE footprints DROP floor_passed;
