-- Lost: nothing.
DROP INDEX trials_by_params;
