-- The host, or the GPU of it, that the placer keeps free for a request that has waited for too long, and since when. It is what
-- the last round decided: a placer of an older version leaves it as it was until the next one leads. It names no row: a host
-- goes without asking who waits for it.
ALTER TABLE placement_requests
    ADD COLUMN IF NOT EXISTS kept_host_id uuid, -- NULL = none is kept
    ADD COLUMN IF NOT EXISTS kept_device_id text, -- NULL = the whole host
    ADD COLUMN IF NOT EXISTS kept_since timestamptz;

ALTER TABLE placement_requests DROP CONSTRAINT IF EXISTS placement_requests_kept_is_whole;
ALTER TABLE placement_requests ADD CONSTRAINT placement_requests_kept_is_whole
    CHECK ((kept_since IS NOT NULL) = (kept_host_id IS NOT NULL) AND (kept_device_id IS NULL OR kept_host_id IS NOT NULL));
