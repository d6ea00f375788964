-- Lost: nothing.
DROP TRIGGER devices_announce ON devices;
DROP TRIGGER devices_announce_new ON devices;
DROP FUNCTION announce_device();
DROP TRIGGER hosts_announce ON hosts;
DROP TRIGGER hosts_announce_new ON hosts;
DROP FUNCTION announce_host();
