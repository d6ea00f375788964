package runtrial

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/masking"
)

// OpenSecret returns the value of a secret. Errors: not_found when it was deleted;
// invalid when it is damaged; unavailable when the database does not answer, or this
// host has no key that opens it.
type OpenSecret func(ctx context.Context, name string) ([]byte, error)

// addSecrets mounts what the sweep names: each file by itself, so that the directory
// stays closed to everyone else on the host.
func (r *run) addSecrets(l *berth.Launch) {
	for _, s := range r.who.Spec.Secrets {
		l.Mounts = append(l.Mounts, berth.Mount{Source: r.dirs.secret(s.Name), Target: s.File, ReadOnly: true})
	}
}

func (d dirs) secret(name string) string { return filepath.Join(d.secrets, name) }

// placeSecrets writes the files that are not there yet. Files that are there are what
// a container has that was started before, although the secrets may have changed since.
// Errors: *berth.StartError when no attempt can have them; unavailable. What was
// prepared before may have its container, and goes on without: r.unplaced is the error then.
func (r *run) placeSecrets(ctx context.Context, l berth.Launch, prepared bool) error {
	var values [][]byte

	r.unplaced = nil

	for _, s := range r.who.Spec.Secrets {
		file := r.dirs.secret(s.Name)
		if i := slices.IndexFunc(l.Mounts, func(m berth.Mount) bool { return m.Target == s.File }); i >= 0 {
			file = l.Mounts[i].Source
		}

		value, err := os.ReadFile(file) //nolint:gosec // G304: of the launch
		if errors.Is(err, fs.ErrNotExist) {
			if value, err = r.placeSecret(ctx, s.Name, file); err == nil {
				r.placed = append(r.placed, file)
			}
		}

		if err != nil && !prepared {
			return err
		}

		r.unplaced = errors.Join(r.unplaced, err)
		values = append(values, value)
	}

	var public []string // names in the sweep file

	for _, o := range r.who.Spec.Wanted() {
		public = append(public, o.Metric, epochName(o.Metric))
	}

	r.mask = masking.New(values, public...)

	return nil
}

// knowSecrets learns what the log must not show, once the container is there. One that
// was there before has what its files were then: where they are gone, nobody knows.
func (r *run) knowSecrets() {
	if !r.container.Adopted || len(r.placed) == 0 && r.unplaced == nil {
		return
	}

	r.log.Warn("the file of a secret is gone, and its container may have another value; its whole log is masked",
		"attempt", r.who.Attempt.ID, "error", r.unplaced)

	for _, file := range r.placed { // the next run must not take it for what the container has
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.log.Warn("removing the file of a secret", "attempt", r.who.Attempt.ID, "error", err)
		}
	}

	r.mask.Blind = true
}

// placeSecret opens a secret into its file.
func (r *run) placeSecret(ctx context.Context, name, file string) ([]byte, error) {
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

	if err := keepSecret(file, value); err != nil {
		return nil, berth.Errorf(berth.KindUnavailable, "writing the file of secret %q: %w", name, err)
	}

	return value, nil
}

// keepSecret writes a secret's file. All users may read it, as the job's user is the
// image's business; the directories around it are closed.
func keepSecret(file string, value []byte) error {
	dir := filepath.Dir(file)
	if err := makeSecretsDir(dir); err != nil {
		return err
	}

	// Of a name that no secret has: it begins with a dot.
	temporary := filepath.Join(dir, ".tmp")
	if err := os.WriteFile(temporary, value, 0o600); err != nil {
		return err
	}

	if err := os.Chmod(temporary, 0o444); err != nil { //nolint:gosec // G302: the job's user reads it
		return err
	}

	return os.Rename(temporary, file)
}
