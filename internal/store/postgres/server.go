package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
)

// OldestServer is the oldest major version of PostgreSQL that Berth runs on: it
// is the first with idle_session_timeout, which takes a lock away from a process
// that was cut off (PostgreSQL 14 release notes, E.23.3.1.9).
const OldestServer = 14

// detour is the consequence of a connection pooler.
const detour = "the database is behind a connection pooler such as pgbouncer, which may give Berth's locks to others: " +
	"give the address of PostgreSQL itself by --postgres-url"

// checkServer refuses a server that is too old, and a connection pooler between us and
// PostgreSQL: in its transaction mode our lock would be another client's, and a machine
// could have two owners. A pooler gives its clients made-up process ids, with which they
// cancel. Errors: invalid.
func checkServer(ctx context.Context, conn *pgx.Conn) error {
	var (
		pid     uint32
		version int // such as 140005
	)
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid(), current_setting('server_version_num')::integer").Scan(&pid, &version); err != nil {
		return err
	}

	switch {
	case version < OldestServer*10_000:
		return berth.Errorf(berth.KindInvalid, "this is PostgreSQL %d, and Berth needs version %d or newer: upgrade the server, "+
			"or give the address of another by --postgres-url", version/10_000, OldestServer)
	case pid != conn.PgConn().PID():
		return berth.Errorf(berth.KindInvalid, detour)
	default:
		return nil
	}
}

// explainRefusal explains a connection that was refused: a pooler does not take the
// settings with which Berth connects, and calls that a violation.
func explainRefusal(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeProtocolViolation {
		return berth.Errorf(berth.KindInvalid, detour+" (%w)", err)
	}

	return err
}

// explainURL explains an unreadable URL, or one with a wrong host: the part before a slash
// is taken for the host and its port. The text contains no part of the password.
func explainURL(url string, err error) error {
	_, rest, _ := strings.Cut(url, "://")
	before, after, _ := strings.Cut(rest, "/")
	slash := strings.Contains(after, "@") && (err != nil || !strings.ContainsAny(before, "@") && !strings.Contains(after, "?"))

	switch {
	case slash:
		return berth.Errorf(berth.KindInvalid, "reading the database's URL: there is a slash before the last @: in a user's name or a password write / as %%2F, and %% as %%25")
	case err != nil:
		return berth.Errorf(berth.KindInvalid, "reading the database's URL: %w", err)
	default:
		return nil
	}
}
