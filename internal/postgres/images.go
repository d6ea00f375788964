package postgres

import (
	"context"
	"time"
)

// RememberImage keeps what a machine said an image is.
func (s *Store) RememberImage(ctx context.Context, ref, digest string) error {
	return translate(s.q.RememberImage(ctx, s.pool, ref, digest), "remembering image "+ref)
}

// RecallImage returns the digest of an image and when a machine last said so.
// Errors: not_found when none did.
func (s *Store) RecallImage(ctx context.Context, ref string) (digest string, resolvedAt time.Time, err error) {
	row, err := s.q.RecallImage(ctx, s.pool, ref)
	if err != nil {
		return "", time.Time{}, translate(err, "recalling image "+ref)
	}

	return row.Digest, row.ResolvedAt.UTC(), nil
}
