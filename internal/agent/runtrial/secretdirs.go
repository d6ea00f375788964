package runtrial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"
)

const (
	// secretsName is where files of secrets are below the data directory: of each attempt
	// in a directory of its own.
	secretsName = "secrets"
	// sharedName is the same below Config.SecretsDir, where others have files, too: there
	// each host has a directory of its own for its attempts.
	sharedName = "berth-secrets"
)

// secretsDir is where this host has files of secrets.
func (e *Executor) secretsDir() string {
	if e.config.SecretsDir == "" {
		return filepath.Join(e.config.DataDir, secretsName)
	}

	return filepath.Join(e.config.SecretsDir, sharedName, e.config.HostID)
}

// makeSecretsDir makes the directory of an attempt. Where everybody may write, as to
// /dev/shm, another user could have made the ones above it, and take ours away.
func makeSecretsDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	host := filepath.Dir(dir)
	if filepath.Base(filepath.Dir(host)) != sharedName {
		return nil // below the data directory
	}

	for _, above := range []string{host, filepath.Dir(host)} {
		info, err := os.Lstat(above)
		if err != nil {
			return err
		}

		if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(stat.Uid) != os.Geteuid() {
			return fmt.Errorf("%s must be a directory that only the worker's user may write to; remove it, or give another --secrets-dir", above)
		}
	}

	return nil
}

// dropSecrets removes the files of an attempt, also from where they were when it was
// launched: --secrets-dir may have been another then. Doing it again changes nothing.
func (d dirs) dropSecrets() error {
	var kept keptLaunch

	_ = readJSON(filepath.Join(d.attempt, launchName), &kept)
	all := os.RemoveAll(d.secrets)

	for _, m := range kept.Launch.Mounts {
		if dir := filepath.Dir(m.Source); isSecretsDir(dir, filepath.Base(d.attempt)) {
			all = errors.Join(all, os.RemoveAll(dir))
		}
	}

	if all != nil {
		return fmt.Errorf("removing the secrets of attempt: %w", all)
	}

	return nil
}

// isSecretsDir reports whether a directory is one in which an attempt's secrets may be,
// of this host or of one that the data directory belonged to.
func isSecretsDir(dir, attemptID string) bool {
	above := filepath.Dir(dir)

	return filepath.Base(dir) == attemptID && (filepath.Base(above) == secretsName || filepath.Base(filepath.Dir(above)) == sharedName)
}

// withSecrets are the attempts of which files of secrets are here.
func (e *Executor) withSecrets() (found []string, err error) {
	entries, err := os.ReadDir(e.secretsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing secrets on disk: %w", err)
	}

	for _, entry := range entries {
		if id, err := uuid.Parse(entry.Name()); err == nil && entry.IsDir() && id.String() == entry.Name() {
			found = append(found, entry.Name())
		}
	}

	return found, nil
}
