// Package migrations holds the numbered schema of the database, one pair of
// files per step: NNN_title.up.sql and NNN_title.down.sql.
package migrations

import "embed"

// FS is the migration files, as golang-migrate's iofs source reads them.
//
//go:embed *.sql
var FS embed.FS
