package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// RememberImage stores the digest that a machine found for an image.
func (s *Store) RememberImage(ctx context.Context, ref, digest string) error {
	return translate(s.q.RememberImage(ctx, s.pool, ref, digest), "remembering image "+ref)
}

// TellHostImages keeps which images a host has, by digest or ID, and whether it pulls others.
func (s *Store) TellHostImages(ctx context.Context, hostID string, images []string, pulls bool) error {
	return translate(s.q.TellHostImages(ctx, s.pool, &dbsqlc.TellHostImagesParams{HostID: hostID, Images: images, Pulls: pulls}), "storing which images host "+hostID+" has")
}

// addLacking adds to each request the hosts that lack its image.
func (s *Store) addLacking(ctx context.Context, tx pgx.Tx, waiting []berth.WaitingRequest) error {
	wanted := make(map[string]bool)
	for _, w := range waiting {
		wanted[w.Image] = true
	}

	// PostgreSQL unpacks 50 lists of 4,000 images in 30 ms (2 cores, 2026-11-26).
	hosts, err := s.q.ListTellingHosts(ctx, tx, slices.Collect(maps.Keys(wanted)), 3*berth.ImagesToldEvery)
	if err != nil {
		return err
	}

	lacking, unable := make(map[string][]string), make(map[string][]string)

	for image := range wanted {
		for _, host := range hosts {
			switch {
			case slices.Contains(host.Has, image):
			case host.Pulls && strings.Contains(image, "@"):
				lacking[image] = append(lacking[image], host.HostID)
			default: // an ID alone is in no registry
				unable[image] = append(unable[image], host.HostID)
			}
		}
	}

	for i := range waiting {
		w := &waiting[i]
		w.Lacking, w.Unable = lacking[w.Image], unable[w.Image]
	}

	return nil
}

// RecallImage returns the digest of an image and when a machine last found it.
// Errors: not_found when none did.
func (s *Store) RecallImage(ctx context.Context, ref string) (digest string, resolvedAt time.Time, err error) {
	row, err := s.q.RecallImage(ctx, s.pool, ref)
	if err != nil {
		return "", time.Time{}, translate(err, "recalling image "+ref)
	}

	return row.Digest, row.ResolvedAt, nil
}
