package backends

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthml/berth"
)

const (
	// fileName is the file of `berth dev` that says where its database and its
	// Temporal are, a line each, for processes beside it.
	fileName = "backends"
	// ownLine is its third line when `berth dev` runs that Temporal itself.
	ownLine = "own"
)

// Save writes the file into a data directory. It holds the database's password.
func (b *Backends) Save(dir string) error {
	text := b.PostgresURL + "\n" + b.TemporalAddress + "\n"
	if b.OwnTemporal {
		text += ownLine + "\n"
	}

	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing addresses: %w", err)
	}

	return nil
}

// Load reads where the `berth dev` of a data directory has its database, and its
// Temporal unless one is set. Errors: invalid.
func (b *Backends) Load(dir string) error {
	path := filepath.Join(dir, fileName)

	text, err := os.ReadFile(path) //nolint:gosec // G304: the user's own
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "no database: give --postgres-url, or the --data-dir of a `berth dev` that runs: %w", err)
	}

	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 2 {
		return berth.Errorf(berth.KindInvalid, "%s must hold the addresses of PostgreSQL and Temporal: start `berth dev` again", path)
	}

	b.OwnTemporal = b.TemporalAddress == "" && len(lines) > 2 && lines[2] == ownLine
	b.PostgresURL, b.TemporalAddress = lines[0], cmp.Or(b.TemporalAddress, lines[1])

	return nil
}
