-- What a Keras program's shim says of an attempt: how many steps of its training were timed and their mean, and, of the GPU's memory,
-- the peaks before its first fit, while it trained, and while it validated. 0 = not known.
ALTER TABLE attempts
    ADD steps bigint NOT NULL DEFAULT 0,
    ADD step_ns bigint NOT NULL DEFAULT 0,
    ADD start_peak_bytes bigint NOT NULL DEFAULT 0,
    ADD training_peak_bytes bigint NOT NULL DEFAULT 0,
    ADD validation_peak_bytes bigint NOT NULL DEFAULT 0;

-- The version before counted what company does not cause, for as long as a row lived.
UPDATE paces SET failed = 0;
