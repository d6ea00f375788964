package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// sweepsNamed is how many sweeps are named that keep a secret from being deleted.
const sweepsNamed = 5

// PutSecret stores a sealed secret and replaces one with its name. Errors:
// conflict when there are too many.
func (s *Store) PutSecret(ctx context.Context, sealed berth.SealedSecret, person string) (berth.Secret, error) {
	row, err := s.q.PutSecret(ctx, s.pool, &dbsqlc.PutSecretParams{
		Name: sealed.Name, Ciphertext: sealed.Ciphertext, Key: sealed.Key, Person: person, MaxSecrets: berth.MaxSecrets,
	})

	err = translate(err, "storing secret "+sealed.Name)
	if berth.KindOf(err) == berth.KindNotFound { // no row was inserted
		return berth.Secret{}, berth.Errorf(berth.KindConflict, "there are %d secrets already, the most that Berth keeps: delete one with `berth secret delete NAME`", berth.MaxSecrets)
	}

	return berth.Secret(row), err
}

// GetSecret reads a sealed secret. Errors: not_found.
func (s *Store) GetSecret(ctx context.Context, name string) (berth.SealedSecret, error) {
	row, err := s.q.GetSecret(ctx, s.pool, name)

	return berth.SealedSecret(row), translate(err, "reading secret "+name)
}

// ListSecrets returns all secrets by name, without their values.
func (s *Store) ListSecrets(ctx context.Context) ([]berth.Secret, error) {
	rows, err := s.q.ListSecrets(ctx, s.pool)

	return collect(rows, err, "listing secrets", func(row dbsqlc.ListSecretsRow) berth.Secret { return berth.Secret(row) })
}

// DeleteSecret deletes a secret. Errors: not_found; conflict without force while a
// sweep that has not ended mounts it.
func (s *Store) DeleteSecret(ctx context.Context, name string, force bool) error {
	return s.inTx(ctx, "deleting secret "+name, func(tx pgx.Tx) error {
		// First, so that sweeps are seen which are being stored now.
		rows, err := s.q.LockSecret(ctx, tx, name)
		if err != nil {
			return err
		}

		if rows == 0 {
			return berth.Errorf(berth.KindNotFound, "no secret %s", name)
		}

		if !force {
			if err := s.mountedByNone(ctx, tx, name); err != nil {
				return err
			}
		}

		_, err = s.q.DeleteSecret(ctx, tx, name)

		return err
	})
}

// mountedByNone is a conflict while a sweep that has not ended mounts the secret.
func (s *Store) mountedByNone(ctx context.Context, tx pgx.Tx, name string) error {
	sweeps, err := s.q.ListSweepsWithSecret(ctx, tx, name, sweepsNamed)
	if err != nil || len(sweeps) == 0 {
		return err
	}

	named := make([]string, len(sweeps))
	for i, sweep := range sweeps {
		named[i] = fmt.Sprintf("%s (%s)", sweep.Name, sweep.ID)
	}

	return berth.Errorf(berth.KindConflict, "secret %q is mounted by sweeps that have not ended: %s; their trials that did not start yet would fail. "+
		"Cancel them, or delete it with --force", name, strings.Join(named, ", "))
}

// keepSecrets keeps the secrets that a new sweep mounts from being deleted until it
// is stored, from when on DeleteSecret sees it.
func (s *Store) keepSecrets(ctx context.Context, tx pgx.Tx, mounts []berth.SecretMount) error {
	if len(mounts) == 0 {
		return nil
	}

	names := make([]string, len(mounts))
	for i, m := range mounts {
		names[i] = m.Name
	}

	kept, err := s.q.KeepSecrets(ctx, tx, names)
	if err != nil {
		return err
	}

	for i, name := range names {
		if !slices.Contains(kept, name) {
			return berth.Errorf(berth.KindInvalid, "/secrets/%d/name: secret %q was deleted while the sweep was submitted: "+
				"an administrator stores it again with `berth secret set %s`", i, name, name)
		}
	}

	return nil
}

// unopenedSecrets says which secrets no host that answers opens, and which of the others a host
// does not open that has some key: it may have been left out when the key was changed.
func unopenedSecrets(secrets []berth.Secret, hosts []berth.Host) (said []string) {
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(h berth.Host) bool { return h.State == berth.HostLost })
	if len(hosts) == 0 { // that says it all
		return nil
	}

	for _, secret := range secrets {
		var without []string

		opens := false

		for _, host := range hosts {
			switch {
			case slices.Contains(host.SecretKeys, secret.Key):
				opens = true
			case len(host.SecretKeys) > 0:
				without = append(without, host.Name)
			}
		}

		switch {
		case !opens:
			said = append(said, secret.Name+": no machine opens it")
		case len(without) > 0:
			said = append(said, secret.Name+": not opened by "+strings.Join(without, ", ")+", which has another key")
		}
	}

	return said
}
