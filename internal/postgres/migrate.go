package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5" // registers the pgx5:// driver
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/berthml/berth/migrations"
)

// Migrate brings the schema to the newest version. It is safe to call from
// several processes at once: golang-migrate holds an advisory lock.
func Migrate(_ context.Context, url string) error {
	return withMigrator(url, func(m *migrate.Migrate) error { return m.Up() })
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
