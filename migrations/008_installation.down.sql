DROP INDEX hosts_machine;
ALTER TABLE hosts DROP machine_id, DROP data_dir;
DROP TABLE installation;
