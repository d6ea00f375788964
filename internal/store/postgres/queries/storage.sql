-- name: GetStorage :one
-- Waits for no table. The directory is shown to a role that may read settings. It says where to look only when PostgreSQL
-- was reached on its own machine.
SELECT pg_database_size(current_database())::bigint AS bytes,
    CASE WHEN coalesce(host(inet_server_addr()), '127.0.0.1') IN ('127.0.0.1', '::1') AND pg_has_role('pg_read_all_settings', 'USAGE')
        THEN current_setting('data_directory') ELSE '' END::text AS dir;

-- name: GetTableSizes :one
-- Fails while one of the tables is rewritten, as by VACUUM FULL.
SELECT pg_total_relation_size('log_chunks')::bigint AS log_bytes, pg_total_relation_size('metrics')::bigint AS metric_bytes;
