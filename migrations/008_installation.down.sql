-- Lost: the installation's id. After this step is made again, run `berth adopt-temporal` once.
DROP INDEX hosts_machine;
ALTER TABLE hosts DROP machine_id, DROP data_dir;
DROP TABLE installation;
