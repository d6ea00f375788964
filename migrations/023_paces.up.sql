-- How attempts get on beside others on a GPU (berth.Pace), and what the placer makes of that for each GPU (berth.Advice).
ALTER TABLE attempts
    ADD mix text NOT NULL DEFAULT '',
    ADD mix_own text NOT NULL DEFAULT '';

CREATE INDEX attempts_of_device ON attempts (device_id, finished_at) WHERE device_id IS NOT NULL;

CREATE TABLE paces (
    place      text NOT NULL,
    mix        text NOT NULL,
    shape_key  text NOT NULL,
    mode       text NOT NULL,
    at_once    integer NOT NULL,
    samples    integer NOT NULL,
    failed     integer NOT NULL,
    mean       double precision NOT NULL,
    variance   double precision NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shape_key, mix, place, mode, at_once),
    CONSTRAINT paces_measured CHECK (samples >= 0 AND failed >= 0 AND mean >= 0 AND variance >= 0 AND at_once > 0),
    CONSTRAINT paces_mode CHECK (mode IN ('time_slicing', 'mps'))
);

ALTER TABLE devices ADD advice json NOT NULL DEFAULT '{}';
