-- Lost: nothing.
DROP INDEX trials_by_duration;
DROP INDEX sweeps_by_name;
