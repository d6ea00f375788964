package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/postgres"
)

// Files of a data directory. `berth dev` and a worker may share one directory,
// so each has its own lock.
const (
	DevLock    = "lock"
	WorkerLock = "host.lock"
	hostIDFile = "host-id"
	OwnerFile  = "host-owner" // whose attempts are below the directory
)

// Lock locks a data directory, and makes a missing one. name is DevLock or WorkerLock. It
// writes nothing: a worker starts on a full disk, too. Errors: conflict while another process
// has the lock; by NFS also one on another machine.
func Lock(dir, name, what string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: PostgreSQL's user must pass through
		return nil, fmt.Errorf("making data directory: %w", err)
	}

	path := filepath.Join(dir, name)

	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // G302,G304: our own lock
	if err != nil {
		return nil, fmt.Errorf("locking data directory: %w", err)
	}

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()

		return nil, berth.Errorf(berth.KindConflict, "another `%s` uses %s: stop it, or give another --data-dir", what, dir)
	}

	return func() { _ = file.Close() }, nil // unlocks
}

// readHostID reads the machine's id; empty when the directory has none.
func readHostID(dir string) (string, error) {
	path := filepath.Join(dir, hostIDFile)

	data, err := os.ReadFile(path) //nolint:gosec // G304: our own file
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("reading host id: %w", err)
	}

	id, err := uuid.Parse(strings.TrimSpace(string(data)))
	if err != nil {
		return "", berth.Errorf(berth.KindInvalid, "%s must hold this machine's id, a UUID: %w", path, err)
	}

	return id.String(), nil
}

func writeHostID(dir, id string) error {
	if err := os.WriteFile(filepath.Join(dir, hostIDFile), []byte(id+"\n"), 0o644); err != nil { //nolint:gosec // G306: nothing secret
		return fmt.Errorf("writing host id: %w", err)
	}

	return nil
}

// Claim notes whose attempts are below a data directory, and refuses one of
// another: to a worker with another database or instance, files and verdicts
// of the neighbor's attempts look like leftovers. Errors: conflict.
func Claim(dir, installationID, instance string) error {
	path := filepath.Join(dir, OwnerFile)
	owner := installationID + " " + instance

	data, err := os.ReadFile(path) //nolint:gosec // G304: our own file
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, []byte(owner+"\n"), 0o644); err != nil { //nolint:gosec // G306: nothing secret
			return fmt.Errorf("writing the owner of the data directory: %w", err)
		}

		return nil
	}

	if err != nil {
		return fmt.Errorf("reading the owner of the data directory: %w", err)
	}

	if last := strings.TrimSpace(string(data)); last != owner {
		return berth.Errorf(berth.KindConflict, "%s holds attempts of installation and instance %q, and this worker is of %q: "+
			"restore the database of that installation, or correct --postgres-url; or give another --data-dir; if the other is gone for good, remove %s", dir, last, owner, path)
	}

	return nil
}

// Findings are what doctor says of a data directory that a worker has used; none
// of one that is new here.
func Findings(ctx context.Context, store *postgres.Store, dir string) []health.Finding {
	const part = "data directory"

	data, err := os.ReadFile(filepath.Join(dir, OwnerFile)) //nolint:gosec // G304: our own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return []health.Finding{health.Broken(part, "its owner cannot be read", err.Error())}
	}

	installation, err := store.Installation(ctx)
	if err != nil {
		return []health.Finding{health.Broken("PostgreSQL", "cannot be read", err.Error())}
	}

	if owner, _, _ := strings.Cut(strings.TrimSpace(string(data)), " "); owner != installation.ID {
		return []health.Finding{health.Broken(part, fmt.Sprintf("%s holds attempts of installation %s, and the database is of %s: its worker does nothing", dir, owner, installation.ID),
			"restore the database of that installation, or correct --postgres-url: the worker goes on by itself; or give another --data-dir")}
	}

	return []health.Finding{health.Fine(part, dir+" is this installation's")}
}

// Default is where a person's own data belongs, and /var/lib/berth for
// root, whose home other users (PostgreSQL's) cannot enter.
func Default() string {
	if os.Geteuid() == 0 {
		return "/var/lib/berth"
	}

	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "berth")
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "berth-data"
	}

	return filepath.Join(home, ".local", "share", "berth")
}
