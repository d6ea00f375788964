DROP INDEX sweeps_by_name;
