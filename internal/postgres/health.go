package postgres

import (
	"context"

	"github.com/berthml/berth"
)

// Health looks at what is late or silent.
func (s *Store) Health(ctx context.Context) (berth.Health, error) {
	var h berth.Health

	waiting, oldest, err := s.OutboxBacklog(ctx)
	if err != nil {
		return h, err
	}

	hosts, err := s.ListHosts(ctx)
	if err != nil {
		return h, err
	}

	suspects, err := s.q.CountSuspectLeases(ctx, s.pool)
	if err != nil {
		return h, translate(err, "counting suspect leases")
	}

	h = berth.Health{OutboxWaiting: waiting, OutboxOldest: oldest, Hosts: len(hosts), SuspectLeases: int(suspects)}

	for _, host := range hosts {
		if host.State != berth.HostLost && host.DiskLow() {
			h.FullDisks = append(h.FullDisks, host.Name)
		}

		switch {
		case host.State != berth.HostLost:
			h.Answering++
		case host.Attempts > 0:
			h.SilentHosts = append(h.SilentHosts, host.Name)
		}
	}

	return h, nil
}
