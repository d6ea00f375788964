package apitest

import (
	"context"
	"slices"

	"github.com/berthml/berth"
)

// PutSecret is api.Secrets.
func (s *Store) PutSecret(_ context.Context, sealed berth.SealedSecret, person string) (berth.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.Sealed = append(s.Sealed, sealed)

	for i := range s.Secrets {
		if known := &s.Secrets[i]; known.Name == sealed.Name {
			known.Version++
			known.Key, known.UpdatedBy = sealed.Key, person

			return *known, nil
		}
	}

	made := berth.Secret{Name: sealed.Name, Key: sealed.Key, Version: 1, CreatedAt: Start, CreatedBy: person, UpdatedAt: Start, UpdatedBy: person}
	s.Secrets = append(s.Secrets, made)

	return made, nil
}

// ListSecrets is api.Secrets.
func (s *Store) ListSecrets(context.Context) ([]berth.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.Secrets), nil
}

// DeleteSecret is api.Secrets.
func (s *Store) DeleteSecret(_ context.Context, name string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	i := slices.IndexFunc(s.Secrets, func(known berth.Secret) bool { return known.Name == name })

	switch {
	case i < 0:
		return berth.Errorf(berth.KindNotFound, "no secret %s", name)
	case slices.Contains(s.InUse, name) && !force:
		return berth.Errorf(berth.KindConflict, "secret %q is mounted", name)
	}

	s.Secrets = slices.Delete(s.Secrets, i, i+1)

	return nil
}
