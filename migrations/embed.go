// Package migrations holds the numbered schema of the database, one pair of
// files per step: NNN_title.up.sql and NNN_title.down.sql. A step leaves what
// the version of Berth before it needs, as both run side by side during an
// upgrade. One that takes away what an older version needs says so in the table
// schema_compat (010). Each file runs as one transaction, so it holds nothing
// that PostgreSQL refuses in one. A down file begins with "-- Lost: " and what
// taking the step back loses.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// FS is the migration files.
//
//go:embed *.sql
var FS embed.FS

// Step is one pair of files.
type Step struct {
	Number   int
	Name     string // such as 005_host_disks
	Up, Down string // SQL
	Loses    string // what going down loses, for a person
}

// lost begins a down file.
const lost = "-- Lost: "

// Read returns the steps in a folder, in order.
func Read(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "*.up.sql") // in order
	if err != nil {
		return nil, fmt.Errorf("listing migrations: %w", err)
	}

	steps := make([]Step, len(names))

	for i, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".up.sql")

		number, err := number(name)
		if err != nil {
			return nil, err
		}

		up, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("reading migration %s: %w", name, err)
		}

		down, err := fs.ReadFile(files, name+".down.sql")
		if err != nil {
			return nil, fmt.Errorf("reading migration %s: %w", name, err)
		}

		first, _, _ := strings.Cut(string(down), "\n")

		loses, said := strings.CutPrefix(first, lost)
		if !said {
			return nil, fmt.Errorf("reading migration %s: its way down must begin with %q", name, lost)
		}

		steps[i] = Step{Number: number, Name: name, Up: string(up), Down: string(down), Loses: loses}
	}

	return steps, nil
}

// Newest is the number of the last step.
func Newest() (int, error) {
	names, err := fs.Glob(FS, "*.up.sql") // in order
	if err != nil {
		return 0, fmt.Errorf("listing migrations: %w", err)
	}

	return number(names[len(names)-1])
}

// number is what a name begins with.
func number(name string) (int, error) {
	var n int
	if _, err := fmt.Sscanf(name, "%d_", &n); err != nil {
		return 0, fmt.Errorf("reading the number of migration %s: %w", name, err)
	}

	return n, nil
}
