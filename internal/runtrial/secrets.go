package runtrial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berthml/berth"
)

// OpenSecret returns the value of a secret. Errors: not_found when it was deleted;
// invalid when it is damaged; unavailable when the database does not answer, or this
// host has no key that opens it.
type OpenSecret func(ctx context.Context, name string) ([]byte, error)

func (e *Executor) secretsDir() string {
	if e.config.SecretsDir != "" {
		return e.config.SecretsDir
	}

	return filepath.Join(e.config.DataDir, "secrets")
}

// addSecrets mounts what the sweep names: each file by itself, so that the directory
// stays closed to everyone else on the host.
func (r *run) addSecrets(l *berth.Launch) {
	for _, s := range r.who.Spec.Secrets {
		l.Mounts = append(l.Mounts, berth.Mount{Source: r.dirs.secret(s.Name), Target: s.File, ReadOnly: true})
	}
}

func (d dirs) secret(name string) string { return filepath.Join(d.secrets, name) }

// placeSecrets writes the files that are not there yet, and learns what the log must
// not show. Files that are there are what the container has, although the secrets may
// have changed since. Errors: *berth.StartError when no attempt can have them;
// unavailable.
func (r *run) placeSecrets(ctx context.Context, prepared bool) error {
	var values [][]byte

	lost := false

	for _, s := range r.who.Spec.Secrets {
		value, err := os.ReadFile(r.dirs.secret(s.Name))
		if errors.Is(err, fs.ErrNotExist) {
			lost = lost || prepared // its container may have another value

			value, err = r.placeSecret(ctx, s.Name)
		}

		if err != nil && !prepared {
			return err
		}

		if err != nil {
			r.log.Warn("a secret of an attempt that was prepared before is not there; its whole log is masked", "attempt", r.who.Attempt.ID, "secret", s.Name, "error", err)

			lost = true
		}

		values = append(values, value)
	}

	if r.mask = newMask(values); r.mask != nil {
		r.mask.blind = lost
	}

	return nil
}

// placeSecret opens a secret into its file.
func (r *run) placeSecret(ctx context.Context, name string) ([]byte, error) {
	if r.config.Secret == nil {
		return nil, &berth.StartError{Kind: berth.FailureInfra, Err: berth.Errorf(berth.KindInvalid,
			"host %s opens no secrets; start its worker with --secrets-key FILE", r.config.HostName)}
	}

	value, err := r.config.Secret(ctx, name)

	switch berth.KindOf(err) {
	case berth.KindNotFound:
		return nil, &berth.StartError{Kind: berth.FailureBadConfig, Err: berth.Errorf(berth.KindInvalid,
			"secret %q was deleted after the sweep was submitted; store it again with `berth secret set %s`, then run `berth sweep rerun-failed`", name, name)}
	case berth.KindInvalid:
		return nil, &berth.StartError{Kind: berth.FailureBadConfig, Err: err}
	default:
	}

	if err != nil {
		return nil, err
	}

	if err := r.dirs.keepSecret(name, value); err != nil {
		return nil, berth.Errorf(berth.KindUnavailable, "writing the file of secret %q: %w", name, err)
	}

	return value, nil
}

// keepSecret writes a secret's file. All users may read it, as the job's user is the
// image's business; the directories around it are closed.
func (d dirs) keepSecret(name string, value []byte) error {
	if err := os.MkdirAll(d.secrets, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	// Of a name that no secret has: it begins with a dot.
	temporary := filepath.Join(d.secrets, ".tmp")
	if err := os.WriteFile(temporary, value, 0o600); err != nil {
		return err
	}

	if err := os.Chmod(temporary, 0o444); err != nil { //nolint:gosec // G302: the job's user reads it
		return err
	}

	return os.Rename(temporary, d.secret(name))
}

// dropSecrets removes the files. Doing it again changes nothing.
func (d dirs) dropSecrets() error {
	if err := os.RemoveAll(d.secrets); err != nil {
		return fmt.Errorf("removing the secrets of attempt: %w", err)
	}

	return nil
}

// withSecrets are the attempts of which files of secrets are here.
func (e *Executor) withSecrets() ([]string, error) {
	entries, err := os.ReadDir(e.secretsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("listing secrets on disk: %w", err)
	}

	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}

	return names, nil
}
