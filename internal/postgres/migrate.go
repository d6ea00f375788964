package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
	"github.com/berthml/berth/migrations"
)

// Migrator moves the schema of a database between versions. Each step and the
// record of its version are one transaction: a step that fails or is cut off
// leaves the version before, whole. The table schema_migrations is that of
// golang-migrate, which berth used before and older versions still read.
type Migrator struct {
	URL   string
	Steps []migrations.Step // in order
	// LockWait bounds how long a step waits for a table that another session
	// uses, such as a backup: meanwhile every other query of that table waits
	// behind the step. Default 5s.
	LockWait time.Duration
	Report   func(text string) // told of each step; may be nil
}

// NewMigrator prepares the steps that this version of Berth knows.
func NewMigrator(url string) (*Migrator, error) {
	steps, err := migrations.Read(migrations.FS)

	return &Migrator{URL: url, Steps: steps}, err
}

// Migrate brings the schema to the newest version that this berth knows.
func Migrate(ctx context.Context, url string) error {
	m, err := NewMigrator(url)
	if err != nil {
		return err
	}

	_, err = m.Up(ctx)

	return err
}

// Up brings the schema to the newest known version and returns the version that
// it has then. It leaves a newer schema that this berth can work on as it is.
// Several processes may call it at once. Errors: invalid when the schema is
// newer and this berth cannot work on it.
func (m *Migrator) Up(ctx context.Context) (version int, err error) {
	err = m.session(ctx, func(conn *pgx.Conn, at int) error {
		version = at

		if at > m.Newest() {
			return checkCompatible(ctx, conn, at, m.Newest())
		}

		for _, step := range m.Steps {
			if step.Number <= at {
				continue
			}

			if err := m.apply(ctx, conn, step, step.Up, step.Number); err != nil {
				return err
			}

			version = step.Number
		}

		return nil
	})

	return version, err
}

// To brings the schema to a version, up or down; 0 removes it with everything
// in it. Errors: invalid for a version that is none, or when the schema has
// steps that this berth does not know.
func (m *Migrator) To(ctx context.Context, version int) error {
	return m.session(ctx, func(conn *pgx.Conn, at int) error {
		back, err := m.back(at, version)
		if err != nil {
			return err
		}

		for _, step := range back {
			if err := m.apply(ctx, conn, step, step.Down, m.before(step)); err != nil {
				return err
			}
		}

		for _, step := range m.Steps {
			if at < step.Number && step.Number <= version {
				if err := m.apply(ctx, conn, step, step.Up, step.Number); err != nil {
					return err
				}
			}
		}

		return nil
	})
}

// Losses says, one line for each step that To would take back, what is lost.
func (m *Migrator) Losses(ctx context.Context, version int) ([]string, error) {
	var lines []string

	err := m.session(ctx, func(_ *pgx.Conn, at int) error {
		back, err := m.back(at, version)

		for _, step := range back {
			lines = append(lines, fmt.Sprintf("%s: %s", step.Name, step.Loses))
		}

		return err
	})

	return lines, err
}

// back is the steps between two versions, newest first, the older one excluded.
func (m *Migrator) back(at, version int) ([]migrations.Step, error) {
	if at > m.Newest() {
		return nil, berth.Errorf(berth.KindInvalid,
			"the database's schema is version %d, and this berth knows only up to %d: use the berth that knows version %d to take it back",
			at, m.Newest(), at)
	}

	known := version == 0 || slices.ContainsFunc(m.Steps, func(s migrations.Step) bool { return s.Number == version })
	if !known {
		return nil, berth.Errorf(berth.KindInvalid, "there is no schema version %d; the newest is %d", version, m.Newest())
	}

	var back []migrations.Step

	for _, step := range slices.Backward(m.Steps) {
		if version < step.Number && step.Number <= at {
			back = append(back, step)
		}
	}

	return back, nil
}

// Newest is the last version that this berth knows.
func (m *Migrator) Newest() int { return m.Steps[len(m.Steps)-1].Number }

// before is the version before a step; 0 before the first.
func (m *Migrator) before(step migrations.Step) int {
	version := 0

	for _, s := range m.Steps {
		if s.Number < step.Number {
			version = s.Number
		}
	}

	return version
}

// session calls use with a connection that alone may migrate, and the version
// that the schema has.
func (m *Migrator) session(ctx context.Context, use func(conn *pgx.Conn, version int) error) error {
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

	if err := checkServer(conn.PgConn()); err != nil {
		return err
	}

	if err := checkDirect(ctx, conn); err != nil {
		return translate(err, "connecting to PostgreSQL to migrate")
	}

	if err := prepare(ctx, conn); err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == codeNoPrivilege {
			return berth.Errorf(berth.KindInvalid, "the role %q may not change the schema: give --postgres-url the role that owns the database, "+
				"not a server's or a worker's: %w", config.User, err)
		}

		return translate(err, "preparing to migrate")
	}

	version, dirty, err := readVersion(ctx, conn)
	if err == nil && dirty {
		err = m.settle(ctx, conn, version)
	}

	if err != nil {
		return translate(err, "reading the schema's version")
	}

	return use(conn, version)
}

// prepare waits for the lock and makes the table of the version. Older berths
// take the same lock when they migrate.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	var database, schema string
	if err := conn.QueryRow(ctx, "SELECT current_database(), current_schema()").Scan(&database, &schema); err != nil {
		return err
	}

	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrateLock(database, schema)); err != nil {
		return err
	}

	_, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")

	return err
}

// migrateLock is the lock that golang-migrate takes (database.GenerateAdvisoryLockId).
func migrateLock(database, schema string) int64 {
	const salt = 1486364155

	return int64(crc32.ChecksumIEEE([]byte(schema+"\x00schema_migrations\x00"+database)) * salt)
}

// readVersion returns the schema's version; 0 = there is none. Dirty is what
// golang-migrate left when it was cut off.
func readVersion(ctx context.Context, db dbsqlc.DBTX) (version int, dirty bool, err error) {
	err = db.QueryRow(ctx, "SELECT version, dirty FROM schema_migrations").Scan(&version, &dirty)

	var pg *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &pg) && pg.Code == codeUndefinedTable {
		return 0, false, nil
	}

	return version, dirty, err
}

// settle clears up what an older berth left when its migration was cut off: the
// step's changes are there as a whole or not at all, as PostgreSQL ran them as
// one transaction. The step is tried again; that what it makes exists already
// says that the changes are there.
func (m *Migrator) settle(ctx context.Context, conn *pgx.Conn, version int) error {
	i := slices.IndexFunc(m.Steps, func(s migrations.Step) bool { return s.Number == version })
	if i < 0 {
		return berth.Errorf(berth.KindUnavailable, "migration %d of the database was cut off, and this berth does not know it: run `berth migrate` of the berth that does", version)
	}

	err := m.apply(ctx, conn, m.Steps[i], m.Steps[i].Up, version)

	var pg *pgconn.PgError
	if errors.As(err, &pg) && slices.Contains(codesDuplicate, pg.Code) {
		return record(ctx, conn, version)
	}

	return err
}

// apply runs one step, up or down, and records the version it leads to, in one
// transaction.
func (m *Migrator) apply(ctx context.Context, conn *pgx.Conn, step migrations.Step, sql string, version int) error {
	wait := m.LockWait
	if wait == 0 {
		wait = 5 * time.Second
	}

	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		settings := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0", wait.Milliseconds())
		if _, err := tx.Exec(ctx, settings); err != nil {
			return err
		}

		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}

		return record(ctx, tx, version)
	})

	var pg *pgconn.PgError

	switch {
	case err == nil:
		if m.Report != nil {
			m.Report(fmt.Sprintf("schema %s: now version %d", step.Name, version))
		}

		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("migration %s was interrupted and changed nothing: %w", step.Name, context.Cause(ctx))
	case errors.As(err, &pg) && pg.Code == codeLockNotAvailable:
		return berth.Errorf(berth.KindUnavailable, "migration %s waited %s for a table that another session uses, such as a backup, and changed nothing; "+
			"run it again when that has ended: %w", step.Name, wait, err)
	default:
		return translate(err, "migration "+step.Name+" failed and changed nothing")
	}
}

// record writes the version; 0 = none.
func record(ctx context.Context, db dbsqlc.DBTX, version int) error {
	sql := "DELETE FROM schema_migrations"
	if version > 0 {
		sql += "; INSERT INTO schema_migrations (version, dirty) VALUES (" + strconv.Itoa(version) + ", false)"
	}

	_, err := db.Exec(ctx, sql)

	return err
}

// CheckSchema looks whether this version of Berth can work on the schema. It
// can on a newer one, unless a step of that took away what it needs. Errors:
// unavailable when `berth migrate` helps, invalid when only a newer berth does.
func (s *Store) CheckSchema(ctx context.Context) error {
	newest, err := migrations.Newest()
	if err != nil {
		return err
	}

	version, dirty, err := readVersion(ctx, s.pool)

	switch {
	case err != nil:
		return translate(err, "reading the schema's version")
	case version == 0:
		return berth.Errorf(berth.KindUnavailable, "the database is empty: run `berth migrate`")
	case dirty:
		return berth.Errorf(berth.KindUnavailable, "migration %d of the database was cut off: run `berth migrate`, which finishes it", version)
	case version < newest:
		return berth.Errorf(berth.KindUnavailable,
			"the database's schema is version %d, older than the %d of this berth: run `berth migrate`", version, newest)
	case version > newest:
		return checkCompatible(ctx, s.pool, version, newest)
	default:
		return nil
	}
}

// checkCompatible looks whether a berth that knows the schema up to newest can
// work on the newer version that the database has. Errors: invalid.
func checkCompatible(ctx context.Context, db dbsqlc.DBTX, version, newest int) error {
	var (
		least int
		pg    *pgconn.PgError
	)

	err := db.QueryRow(ctx, "SELECT coalesce(max(min_version), 0) FROM schema_compat").Scan(&least)

	switch {
	case errors.As(err, &pg) && pg.Code == codeUndefinedTable:
		return nil
	case err != nil:
		return translate(err, "reading what the schema asks of berth")
	case least > newest:
		return berth.Errorf(berth.KindInvalid,
			"the database's schema is version %d, and a berth on it must know version %d; this one knows %d: use the newer berth, "+
				"or take the schema back with it by `berth migrate --to %d`", version, least, newest, newest)
	default:
		return nil
	}
}
