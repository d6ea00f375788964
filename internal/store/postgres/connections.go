package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth/internal/control/health"
)

// connectionUse reads the number of connections against the limits of the server
// and of connected roles. pg_stat_activity shows only roles with connections. A
// failed query leaves its value unknown.
func (s *Store) connectionUse(ctx context.Context) []health.ConnectionUse {
	rows, err := s.pool.Query(ctx, `WITH sessions AS (
			SELECT usesysid, datname FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL
		)
		SELECT '' AS role, (SELECT count(*) FROM sessions)::int AS used, (current_setting('max_connections')::int
			- current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true)::int, 0)) AS "limit",
			(SELECT source = 'command line' FROM pg_settings WHERE name = 'max_connections') AS fixed
		UNION ALL
		SELECT r.rolname::text, count(*)::int, r.rolconnlimit, false FROM sessions s JOIN pg_roles r ON r.oid = s.usesysid
		WHERE r.rolconnlimit > 0 AND NOT r.rolsuper GROUP BY r.rolname, r.rolconnlimit HAVING bool_or(s.datname = current_database())
		ORDER BY role`)
	if err != nil {
		return nil
	}

	use, err := pgx.CollectRows(rows, pgx.RowToStructByPos[health.ConnectionUse])
	if err != nil {
		return nil
	}

	return use
}

// tooMany is the next step when PostgreSQL takes no more connections. It names no
// number: the limit cannot be read then, and a lower number would make it worse.
const tooMany = "PostgreSQL takes no more connections, of this role or at all: as its administrator look at " +
	"SELECT rolname, rolconnlimit FROM pg_roles and at SHOW max_connections, and raise the one that is reached, by ALTER ROLE … CONNECTION LIMIT, " +
	"or by max_connections where it is set (with docker-compose.yml BERTH_POSTGRES_CONNECTIONS in .env) and a restart; Berth goes on by itself"

// refusedConnection reports whether an error is that PostgreSQL takes no more connections.
func refusedConnection(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)

	return ok && pg.Code == codeTooManyConnections
}
