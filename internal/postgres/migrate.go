package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5" // registers the pgx5:// driver
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
	"github.com/berthml/berth/migrations"
)

// Migrate brings the schema to the newest version. It is safe to call from
// several processes at once: golang-migrate holds an advisory lock. Errors:
// invalid when the schema is newer than this version of Berth; unavailable
// when a migration was cut off.
func Migrate(_ context.Context, url string) error {
	newest, err := migrations.Newest()
	if err != nil {
		return err
	}

	return withMigrator(url, func(m *migrate.Migrate) error {
		version, dirty, err := m.Version()

		switch {
		case errors.Is(err, migrate.ErrNilVersion): // an empty database
		case err != nil:
			return err
		case dirty:
			return cutOff(int(version))
		case int(version) > newest:
			return berth.Errorf(berth.KindInvalid,
				"the database's schema is version %d, newer than the %d of this berth: use the newer berth", version, newest)
		}

		return m.Up()
	})
}

// CheckSchema looks whether the schema has what this version of Berth needs. A
// newer one has: see package migrations. Errors: unavailable, with what to do.
func (s *Store) CheckSchema(ctx context.Context) error {
	newest, err := migrations.Newest()
	if err != nil {
		return err
	}

	var (
		version int
		dirty   bool
		pg      *pgconn.PgError
	)

	err = s.pool.QueryRow(ctx, "SELECT version, dirty FROM schema_migrations").Scan(&version, &dirty)

	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &pg) && pg.Code == codeUndefinedTable:
		return berth.Errorf(berth.KindUnavailable, "the database is empty: run `berth migrate`")
	case err != nil:
		return translate(err, "reading the schema's version")
	case dirty:
		return cutOff(version)
	case version < newest:
		return berth.Errorf(berth.KindUnavailable,
			"the database's schema is version %d, older than the %d of this berth: run `berth migrate`", version, newest)
	default:
		return nil
	}
}

// cutOff is the error of a schema whose last migration did not report its end.
func cutOff(version int) error {
	return berth.Errorf(berth.KindUnavailable,
		"migration %[1]d of the database was cut off; its changes are there as a whole or not at all: "+
			"look, set version in schema_migrations to %[1]d if they are and to %[2]d if not, and dirty to false; then run `berth migrate`",
		version, version-1)
}

// MigrateDown removes the whole schema with everything in it.
func MigrateDown(_ context.Context, url string) error {
	return withMigrator(url, func(m *migrate.Migrate) error { return m.Down() })
}

func withMigrator(url string, step func(*migrate.Migrate) error) (err error) {
	source, err := iofs.New(migrations.FS, ".")
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}

	m, err := migrate.NewWithSourceInstance("iofs", source, driverURL(url))
	if err != nil {
		return translate(err, "connecting to PostgreSQL to migrate")
	}

	defer func() {
		sourceErr, databaseErr := m.Close()
		err = errors.Join(err, sourceErr, databaseErr)
	}()

	if err := step(m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return translate(err, "migrating the schema")
	}

	return nil
}

// driverURL names the pgx driver in the scheme, as golang-migrate wants it.
func driverURL(url string) string {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, ok := strings.CutPrefix(url, scheme); ok {
			return "pgx5://" + rest
		}
	}

	return url
}
