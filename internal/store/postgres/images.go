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

// hostTold holds which of the requested images a host has.
type hostTold struct {
	at  time.Time       // when the host said it
	has map[string]bool // by image that was asked for
}

// coversImages reports whether it is known of all images whether the host has them.
func (t hostTold) coversImages(images []string) bool {
	return !slices.ContainsFunc(images, func(image string) bool {
		_, known := t.has[image]

		return !known
	})
}

// addLacking adds to each request the hosts that lack its image.
func (s *Store) addLacking(ctx context.Context, tx pgx.Tx, waiting []berth.WaitingRequest) error {
	wanted := make(map[string]bool)
	for _, w := range waiting {
		wanted[w.Image] = true
	}

	hosts, err := s.q.ListTellingHosts(ctx, tx, 3*berth.ImagesToldEvery)
	if err != nil {
		return err
	}

	told, err := s.toldBy(ctx, tx, hosts, slices.Collect(maps.Keys(wanted)))
	if err != nil {
		return err
	}

	lacking, unable := make(map[string][]string), make(map[string][]string)

	for image := range wanted {
		for _, host := range hosts {
			said, known := told[host.HostID]

			switch {
			case !known || said.has[image]:
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

// toldBy returns which of the images each host has, by host. It reads only the
// lists that are new since the last call, or that lack one of the images: a machine
// may have thousands of images, and PostgreSQL unpacks 50 lists of 4,000 in 30 ms
// (2 cores, 2026-11-26), which each round of the placer would pay.
func (s *Store) toldBy(ctx context.Context, tx pgx.Tx, hosts []dbsqlc.ListTellingHostsRow, images []string) (map[string]hostTold, error) {
	var ask []string

	known := s.told.Load()
	told := make(map[string]hostTold, len(hosts))

	for _, host := range hosts {
		if before, ok := (*known)[host.HostID]; ok && before.at.Equal(host.ToldAt) && before.coversImages(images) {
			told[host.HostID] = before
		} else {
			ask = append(ask, host.HostID)
		}
	}

	if len(ask) == 0 {
		return told, nil
	}

	rows, err := s.q.ListHostImages(ctx, tx, images, ask)
	if err != nil {
		return nil, err
	}

	for _, row := range rows {
		has := make(map[string]bool, len(images))
		for _, image := range images {
			has[image] = slices.Contains(row.Has, image)
		}

		told[row.HostID] = hostTold{at: row.ToldAt, has: has}
	}

	s.told.Store(&told)

	return told, nil
}

// RecallImage returns the digest of an image and when a machine last found it.
// Errors: not_found when none did.
func (s *Store) RecallImage(ctx context.Context, ref string) (digest string, resolvedAt time.Time, err error) {
	row, err := s.q.RecallImage(ctx, s.pool, ref)
	if err != nil {
		return "", time.Time{}, translate(err, "recalling image "+ref)
	}

	return row.Digest, row.ResolvedAt.UTC(), nil
}
