#!/bin/sh
# Makes one role and its databases each for Berth and Temporal, so that neither
# can read or starve the other, and a role each for Berth's server and worker when
# they have passwords. PostgreSQL's image runs it on first start. Run again, it makes
# what is missing, and gives each role the password that it has in .env. A limit of
# connections that is higher, or none at all, stays.
set -eu

# sql runs standard input as the superuser, with each argument as a variable.
sql() {
	for variable in "$@"; do
		set -- "$@" --set "$variable"
		shift
	done
	psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username postgres "$@"
}

# role <name> <password> <connections>
role() {
	sql "role=$1" "password=$2" "connections=$3" <<-'SQL'
		SELECT format('CREATE ROLE %I LOGIN CONNECTION LIMIT %s', :'role', :connections)
		WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec
		ALTER ROLE :"role" PASSWORD :'password';
		SELECT format('ALTER ROLE %I CONNECTION LIMIT %s', rolname, :connections)
		FROM pg_roles WHERE rolname = :'role' AND rolconnlimit BETWEEN 0 AND :connections - 1 \gexec
	SQL
}

# database <name> <owner>
database() {
	sql "database=$1" "owner=$2" <<-'SQL'
		SELECT format('CREATE DATABASE %I OWNER %I', :'database', :'owner')
		WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
	SQL
}

# Of the 300 connections that PostgreSQL has (docker-compose.yml), workers may have 150:
# each machine's takes 6. Without roles of their own they share the owner's.
role berth "$BERTH_DB_PASSWORD" 180
database berth berth
role temporal "$TEMPORAL_DB_PASSWORD" 60
database temporal temporal
database temporal_visibility temporal

# `berth migrate` grants them what each needs.
[ -z "${BERTH_SERVER_DB_PASSWORD:-}" ] || role berth_server "$BERTH_SERVER_DB_PASSWORD" 60
[ -z "${BERTH_WORKER_DB_PASSWORD:-}" ] || role berth_worker "$BERTH_WORKER_DB_PASSWORD" 150
