-- Lost: which files of which attempts are in the store of artifacts. The objects stay there, and files that are on hosts.
DROP TABLE artifacts_left_out;
DROP TABLE artifacts;
ALTER TABLE hosts DROP stores_files;
DROP INDEX attempts_files_pending;
ALTER TABLE attempts
    DROP CONSTRAINT attempts_files_state,
    DROP CONSTRAINT attempts_files_lost_why,
    DROP CONSTRAINT attempts_files_stored_once_finished,
    DROP CONSTRAINT attempts_files_counts,
    DROP files_state,
    DROP files_problem,
    DROP files_left_out,
    DROP files_tries,
    DROP files_retry_at,
    DROP files_settled_at;
