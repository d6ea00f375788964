// Package migrations holds the numbered schema of the database, one pair of
// files per step: NNN_title.up.sql and NNN_title.down.sql. A step leaves what
// the version of Berth before it needs, as both run side by side during an
// upgrade.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
)

// FS is the migration files, as golang-migrate's iofs source reads them.
//
//go:embed *.sql
var FS embed.FS

// Newest is the number of the last step.
func Newest() (int, error) {
	names, err := fs.Glob(FS, "*.up.sql") // in order
	if err != nil {
		return 0, fmt.Errorf("listing migrations: %w", err)
	}

	var n int
	if _, err := fmt.Sscanf(names[len(names)-1], "%d_", &n); err != nil {
		return 0, fmt.Errorf("reading the number of migration %s: %w", names[len(names)-1], err)
	}

	return n, nil
}
