#!/bin/sh
# Makes one role and its databases each for Berth and Temporal, so that neither
# can read or starve the other. PostgreSQL's image runs it on first start.
set -eu
psql --set ON_ERROR_STOP=1 --username postgres \
	--set berth="$BERTH_DB_PASSWORD" --set temporal="$TEMPORAL_DB_PASSWORD" <<-'SQL'
	CREATE ROLE berth LOGIN PASSWORD :'berth' CONNECTION LIMIT 60;
	CREATE DATABASE berth OWNER berth;
	CREATE ROLE temporal LOGIN PASSWORD :'temporal' CONNECTION LIMIT 60;
	CREATE DATABASE temporal OWNER temporal;
	CREATE DATABASE temporal_visibility OWNER temporal;
SQL
