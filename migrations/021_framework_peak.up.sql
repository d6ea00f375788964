-- The most that the program's framework held of the GPU's memory, as it says itself; 0 = it did not.
ALTER TABLE attempts ADD framework_peak_bytes bigint NOT NULL DEFAULT 0;
