-- Lost: the hosts' free disk space, which their workers measure again.
ALTER TABLE hosts DROP disk_free_bytes, DROP disk_headroom_bytes;
