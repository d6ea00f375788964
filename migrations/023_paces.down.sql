-- Lost: how attempts get on beside others. It is measured again.
ALTER TABLE devices DROP COLUMN advice;

DROP TABLE paces;

DROP INDEX attempts_of_device;

ALTER TABLE attempts
    DROP COLUMN mix,
    DROP COLUMN mix_own;
