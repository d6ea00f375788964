package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/cgroup"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/postgres"
)

// Files of a data directory. `berth dev` and a worker may share one directory,
// so each has its own lock.
const (
	devLock       = "lock"
	workerLock    = "host.lock"
	hostIDFile    = "host-id"
	hostOwnerFile = "host-owner" // whose attempts are below the directory
)

// holder is the content of a lock file: the process that holds it, for machines
// that share a directory over a network and do not see each other's locks.
type holder struct {
	BootID    string `json:"boot_id"`    // of the kernel: its own locks can be trusted
	MachineID string `json:"machine_id"` // outlives the boot; empty = not known
	Host      string `json:"host"`
	PID       int    `json:"pid"`
}

// lockBytes is the size of a lock file. Its longest record has some 250 bytes.
const lockBytes = 512

// lockDir locks a data directory, and makes a missing one. Only other machines
// need the record of the owner, so a disk that refuses to store it does not
// prevent the start: the running containers must be adopted. Errors: conflict
// while another process has the lock, also one on another machine.
func lockDir(dir, name, what string, log *slog.Logger) (unlock func(), err error) {
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

	self := thisProcess()
	if err := lockConflict(file, self, path, what); err != nil {
		_ = file.Close()

		return nil, err
	}

	if err := writeHolder(file, self); err != nil {
		log.Warn("writing who uses the data directory; another machine that shares it may not notice", "file", path, "error", err)
	}

	return func() {
		_ = overwrite(file, nil) // an orderly end: no other machine need ask whether we live
		_ = file.Close()         // unlocks
	}, nil
}

// lockConflict returns a conflict when the lock names a holder on another machine.
func lockConflict(file *os.File, self holder, path, what string) error {
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("reading lock of data directory: %w", err)
	}

	var last holder
	if json.Unmarshal(text, &last) == nil && last.BootID != self.BootID && // else unreadable, of an older version or blank
		last.MachineID != "" && self.MachineID != "" && last.MachineID != self.MachineID {
		return berth.Errorf(berth.KindConflict, "a `%s` on machine %q (process %d) uses %s, or did not end in order: "+
			"give another --data-dir; if it does not run any more, remove %s", what, last.Host, last.PID, filepath.Dir(path), path)
	}

	return nil
}

// writeHolder writes the holder into the lock file.
func writeHolder(file *os.File, self holder) error {
	text, err := json.Marshal(self)
	if err != nil {
		return err
	}

	return overwrite(file, text)
}

// overwrite replaces the text of a lock in place, padded with blanks: a file
// that is emptied gives its block away, and a full disk has no other.
func overwrite(file *os.File, text []byte) error {
	text = append(text, bytes.Repeat([]byte(" "), max(lockBytes-len(text), 0))...)
	if _, err := file.WriteAt(text, 0); err != nil {
		return err
	}

	return file.Truncate(int64(len(text))) // of a longer record
}

// thisProcess leaves unreadable fields empty: a container may have no machine
// id.
func thisProcess() holder {
	boot, _ := cgroup.FS{}.BootID()
	name, _ := os.Hostname() // only for people
	machine, _ := os.ReadFile("/etc/machine-id")

	return holder{BootID: boot, MachineID: strings.TrimSpace(string(machine)), Host: name, PID: os.Getpid()}
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

// claimDir notes whose attempts are below a data directory, and refuses one of
// another: to a worker with another database or instance, files and verdicts
// of the neighbor's attempts look like leftovers. Errors: conflict.
func claimDir(dir, installationID, instance string) error {
	path := filepath.Join(dir, hostOwnerFile)
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

// checkOwner is what doctor says of a data directory that a worker has used; none
// of one that is new here.
func checkOwner(ctx context.Context, store *postgres.Store, dir string) []health.Finding {
	const part = "data directory"

	data, err := os.ReadFile(filepath.Join(dir, hostOwnerFile)) //nolint:gosec // G304: our own file
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
