-- Lost: which hosts and GPUs are kept free for requests that have waited long. The placer goes on to keep them.
ALTER TABLE placement_requests
    DROP CONSTRAINT IF EXISTS placement_requests_kept_is_whole,
    DROP COLUMN IF EXISTS kept_host_id,
    DROP COLUMN IF EXISTS kept_device_id,
    DROP COLUMN IF EXISTS kept_since;
