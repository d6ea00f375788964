#!/bin/bash
# Starts PostgreSQL in the image that scripts/compose-images makes, as the
# public image postgres:15 does for what docker-compose.yml asks of it: an empty
# data directory gets a cluster whose superuser postgres has POSTGRES_PASSWORD,
# and the scripts of /docker-entrypoint-initdb.d run once, on a server that
# listens on its socket only.
set -euo pipefail

export PGDATA=${PGDATA:-/var/lib/postgresql/data}

[ "${1:0:1}" != - ] || set -- postgres "$@"

if [ "$1" != postgres ]; then
	exec "$@"
fi

if [ "$(id -u)" -eq 0 ]; then
	mkdir -p "$PGDATA" /var/run/postgresql
	chown -R postgres:postgres "$PGDATA" /var/run/postgresql
	chmod 700 "$PGDATA"
	exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	[ -n "${POSTGRES_PASSWORD:-}" ] || {
		echo "POSTGRES_PASSWORD must hold the password of the superuser postgres" >&2
		exit 1
	}
	initdb --username postgres --pwfile <(printf '%s\n' "$POSTGRES_PASSWORD") --auth-local trust --auth-host scram-sha-256
	printf '\nhost all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"

	pg_ctl -w -o "-c listen_addresses=''" start
	for script in /docker-entrypoint-initdb.d/*.sh; do
		[ -e "$script" ] || continue
		echo "running $script"
		# One that failed must not leave a cluster that looks whole.
		sh "$script" || {
			pg_ctl -w -m fast stop
			rm -rf "${PGDATA:?}"/*
			exit 1
		}
	done
	pg_ctl -w -m fast stop
fi

exec "$@" -c listen_addresses='*'
