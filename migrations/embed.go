// Package migrations holds the schema of the database as numbered steps:
// NNN_title.sql. A step runs as one transaction, so it holds nothing that
// PostgreSQL refuses in one. There is no way back: restore a backup.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.sql
var files embed.FS

// Step is one file.
type Step struct {
	Number int    // from 1, without gaps
	Name   string // such as 001_initial
	SQL    string
}

// Read returns the steps that this berth knows, in order.
func Read() ([]Step, error) {
	names, err := fs.Glob(files, "*.sql") // in order
	if err != nil {
		return nil, fmt.Errorf("listing migrations: %w", err)
	}

	steps := make([]Step, len(names))

	for i, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading migration %q: %w", name, err)
		}

		steps[i] = Step{Number: i + 1, Name: strings.TrimSuffix(name, ".sql"), SQL: string(text)}
	}

	return steps, nil
}
