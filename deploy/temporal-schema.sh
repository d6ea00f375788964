#!/bin/sh
# Brings Temporal's two databases to the schema of this version.
set -eu
for database in temporal visibility; do
	name=temporal
	[ "$database" = temporal ] || name=temporal_visibility
	tool="temporal-sql-tool --plugin postgres12 --endpoint postgres --port 5432 --user temporal --database $name"
	$tool setup-schema -v 0.0 || true # it is there already from the second start on
	$tool update-schema -d "/etc/temporal/schema/postgresql/v12/$database/versioned"
done
