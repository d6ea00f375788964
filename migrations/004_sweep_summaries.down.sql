-- Lost: nothing; summaries become slow.
DROP INDEX trials_by_value, attempts_out_of_memory;
