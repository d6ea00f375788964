-- Which images a host has, by digest or ID, and whether it pulls others, as its worker told: of two hosts a trial had better
-- go to the one that has its image. A worker of an older version tells nothing; what is some minutes old says nothing.
CREATE TABLE IF NOT EXISTS host_images (
    host_id uuid PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    images  text[] NOT NULL,
    pulls   boolean NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now()
);
