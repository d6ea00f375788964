-- Lost: which machine and data directory each host is of. The installation's id stays, for Temporal's namespace keeps it too.
DROP INDEX hosts_machine;
ALTER TABLE hosts DROP machine_id, DROP data_dir;
