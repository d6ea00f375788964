package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
	"github.com/berthml/berth/migrations"
)

// migrationLock is the advisory lock of migrations: "berth" in ASCII. It is the
// database's own, as PostgreSQL keeps advisory locks per database.
const migrationLock = 0x6265727468

// Migrator brings the schema of a database to the newest version. Each step and
// the record of its version are one transaction: a step that fails or is
// interrupted leaves the version before.
type Migrator struct {
	URL   string
	Steps []migrations.Step // in order
	// LockWait bounds how long a step waits for a table that another session
	// uses, such as a backup: every other query of that table waits behind the
	// step. Default 5s.
	LockWait time.Duration
	Report   func(text string) // called with each step; may be nil
}

// NewMigrator prepares the steps that this version of Berth knows.
func NewMigrator(url string) (*Migrator, error) {
	steps, err := migrations.Read()

	return &Migrator{URL: url, Steps: steps}, err
}

// Migrate brings the schema to the newest version that this berth knows.
func Migrate(ctx context.Context, url string) error {
	m, err := NewMigrator(url)
	if err != nil {
		return err
	}

	return m.Up(ctx)
}

// Newest is the last version that this berth knows.
func (m *Migrator) Newest() int { return len(m.Steps) }

// Up brings the schema to the newest known version. Several processes may call
// it at once. Errors: invalid when the schema is newer than this berth.
func (m *Migrator) Up(ctx context.Context) error {
	return m.session(ctx, func(conn *pgx.Conn) error {
		version, err := readVersion(ctx, conn)
		if err != nil {
			return translate(err, "reading the schema's version")
		}

		if version > m.Newest() {
			return newerSchema(version, m.Newest())
		}

		for _, step := range m.Steps[version:] {
			if err := m.apply(ctx, conn, step); err != nil {
				return err
			}
		}

		return nil
	})
}

// session calls use with a connection that alone may migrate.
func (m *Migrator) session(ctx context.Context, use func(conn *pgx.Conn) error) error {
	config, err := pgx.ParseConfig(m.URL)
	if err = explainURL(m.URL, err); err != nil {
		return err
	}

	config.RuntimeParams["application_name"] = "berth migrate"

	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return translate(explainRefusal(err), "connecting to PostgreSQL to migrate")
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // closing gives the lock back

	if err := checkServer(ctx, conn); err != nil {
		return translate(err, "connecting to PostgreSQL to migrate")
	}

	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return translate(err, "waiting for other migrations")
	}

	_, err = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL PRIMARY KEY)")
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == codeNoPrivilege {
		return berth.Errorf(berth.KindInvalid, "the role %q may not change the schema: give --postgres-url the role that owns the database, "+
			"not a server's or a worker's: %w", config.User, err)
	}

	if err != nil {
		return translate(err, "preparing to migrate")
	}

	return use(conn)
}

// readVersion returns the schema's version; 0 = the database is empty.
func readVersion(ctx context.Context, db dbsqlc.DBTX) (version int, err error) {
	err = db.QueryRow(ctx, "SELECT version FROM schema_version").Scan(&version)

	pg, refused := errors.AsType[*pgconn.PgError](err)
	if errors.Is(err, pgx.ErrNoRows) || refused && pg.Code == codeUndefinedTable {
		return 0, nil
	}

	return version, err
}

// apply runs one step and records its version, in one transaction.
func (m *Migrator) apply(ctx context.Context, conn *pgx.Conn, step migrations.Step) error {
	wait := m.LockWait
	if wait == 0 {
		wait = 5 * time.Second
	}

	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		settings := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0", wait.Milliseconds())
		version := fmt.Sprintf("DELETE FROM schema_version; INSERT INTO schema_version VALUES (%d)", step.Number)

		for _, sql := range []string{settings, step.SQL, version} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}

		return nil
	})

	pg, refused := errors.AsType[*pgconn.PgError](err)

	switch {
	case err == nil:
		if m.Report != nil {
			m.Report("migrated to " + step.Name)
		}

		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("migration %s was interrupted and changed nothing: %w", step.Name, context.Cause(ctx))
	case refused && pg.Code == codeLockNotAvailable:
		return berth.Errorf(berth.KindUnavailable, "migration %s waited %s for a table that another session uses, such as a backup, and changed nothing; "+
			"run it again when that has ended: %w", step.Name, wait, err)
	default:
		return translate(err, "migration "+step.Name+" failed and changed nothing")
	}
}

// CheckSchema looks whether this version of Berth can work on the schema.
// Errors: unavailable when `berth migrate` helps, invalid when only a newer
// berth does.
func (s *Store) CheckSchema(ctx context.Context) error {
	steps, err := migrations.Read()
	if err != nil {
		return err
	}

	version, err := readVersion(ctx, s.pool)

	switch newest := len(steps); {
	case err != nil:
		return translate(err, "reading the schema's version")
	case version == 0:
		return berth.Errorf(berth.KindUnavailable, "the database is empty: run `berth migrate`")
	case version < newest:
		return berth.Errorf(berth.KindUnavailable,
			"the database's schema is version %d, older than the %d of this berth: run `berth migrate`", version, newest)
	case version > newest:
		return newerSchema(version, newest)
	default:
		return nil
	}
}

func newerSchema(version, newest int) error {
	return berth.Errorf(berth.KindInvalid, "the database's schema is version %d, newer than the %d of this berth: use the newer berth", version, newest)
}
