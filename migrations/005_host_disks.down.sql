ALTER TABLE hosts DROP disk_free_bytes, DROP disk_headroom_bytes;
