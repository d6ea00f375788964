-- What images were when a machine last looked, so that a sweep can be accepted while Temporal, by which machines are
-- asked, does not answer.
CREATE TABLE image_digests (
    ref         text PRIMARY KEY,
    digest      text NOT NULL,
    resolved_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT image_digests_not_empty CHECK (ref <> '' AND digest <> '')
);
