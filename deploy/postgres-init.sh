#!/bin/sh
# Makes one role and its databases each for Berth and Temporal, so that neither
# can read or starve the other, and a role each for Berth's server and worker when
# they have passwords. PostgreSQL's image runs it on first start.
set -eu
psql --set ON_ERROR_STOP=1 --username postgres \
	--set berth="$BERTH_DB_PASSWORD" --set temporal="$TEMPORAL_DB_PASSWORD" <<-'SQL'
	CREATE ROLE berth LOGIN PASSWORD :'berth' CONNECTION LIMIT 60;
	CREATE DATABASE berth OWNER berth;
	CREATE ROLE temporal LOGIN PASSWORD :'temporal' CONNECTION LIMIT 60;
	CREATE DATABASE temporal OWNER temporal;
	CREATE DATABASE temporal_visibility OWNER temporal;
SQL

# `berth migrate` grants them what each needs.
for role in "berth_server ${BERTH_SERVER_DB_PASSWORD:-}" "berth_worker ${BERTH_WORKER_DB_PASSWORD:-}"; do
	[ -n "${role#* }" ] || continue
	psql --set ON_ERROR_STOP=1 --username postgres --set role="${role%% *}" --set password="${role#* }" <<-'SQL'
		CREATE ROLE :"role" LOGIN PASSWORD :'password' CONNECTION LIMIT 60;
	SQL
done
