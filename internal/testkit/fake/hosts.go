package fake

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthml/berth"
)

// RegisterHost stores a worker's report of its machine. Leases beyond smaller
// totals stay booked until they end.
func (l *Ledger) RegisterHost(ctx context.Context, h berth.Host, version string) error {
	return l.hooked().RegisterHost.do(ctx, Registration{h, version}, l.step("RegisterHost", h.ID, func() error {
		h.State, h.LastSeenAt = berth.HostReady, l.now()
		l.targets[h.ID] = h

		if old := l.hosts[h.ID]; old != nil {
			h.Attempts, h.CPUMilliReserved, h.MemoryReservedBytes = old.Attempts, old.CPUMilliReserved, old.MemoryReservedBytes
		}

		l.hosts[h.ID] = &h
		l.fit(&h)

		return nil
	}))
}

// fit makes a host's totals what its worker said, but no less than its leases hold.
func (l *Ledger) fit(h *berth.Host) {
	target := l.targets[h.ID]
	h.CPUMilli = max(target.CPUMilli, h.CPUMilliReserved)
	h.MemoryBytes = max(target.MemoryBytes, h.MemoryReservedBytes+h.MemoryHeadroomBytes)

	if target.MaxAttempts > 0 {
		h.MaxAttempts = max(target.MaxAttempts, h.Attempts)
	}
}

// TouchHost says the worker is alive and renews the leases of these attempts.
// Errors: not_found.
func (l *Ledger) TouchHost(ctx context.Context, hostID string, free berth.HostFree, seen []berth.SeenAttempt) error {
	return l.hooked().TouchHost.do(ctx, Touch{free, seen}, l.step("TouchHost", hostID, func() error {
		h := l.hosts[hostID]
		if h == nil {
			return berth.Errorf(berth.KindNotFound, "the host is not registered")
		}

		h.LastSeenAt, h.MemoryFreeBytes, h.DiskFreeBytes, h.Problem = l.now(), free.MemoryBytes, free.DiskBytes, free.Problem
		h.OutputsProblem = free.OutputsProblem

		for _, attempt := range seen {
			if lease := l.leases[attempt.AttemptID]; lease != nil && lease.HostID == hostID && lease.Token == attempt.Token && lease.State != berth.LeaseReleased {
				lease.State, lease.ExpiresAt = berth.LeaseHeld, l.now().Add(berth.LeaseTerm)
			}
		}

		if free.Problem == "" {
			l.revive(func(a *berth.Attempt) bool { return a.HostID == hostID })
		}

		return nil
	}))
}

// ListHosts returns all hosts by name.
func (l *Ledger) ListHosts(ctx context.Context) (hosts []berth.Host, err error) {
	err = l.do(ctx, "ListHosts", "", func() error {
		for _, h := range l.hosts {
			host, target := *h, l.targets[h.ID]
			host.CPUMilli, host.MemoryBytes, host.MaxAttempts = target.CPUMilli, target.MemoryBytes, target.MaxAttempts
			host.Late = l.now().Sub(host.LastSeenAt) > berth.HostLateAfter

			switch {
			case l.now().Sub(host.LastSeenAt) > berth.HostLostAfter:
				host.State = berth.HostLost
			case host.Problem != "":
				host.State = berth.HostUnready
			}

			hosts = append(hosts, host)
		}

		return nil
	})

	slices.SortFunc(hosts, func(a, b berth.Host) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })

	return hosts, err
}

// revivable reports whether an attempt was abandoned and is the newest
// of its trial, which has not ended.
func (l *Ledger) revivable(a *berth.Attempt) bool {
	for _, other := range l.attempts {
		if other.TrialID == a.TrialID && other.Number > a.Number {
			return false
		}
	}

	return a.State == berth.AttemptAbandoned && !l.refused[a.ID] && l.trials[a.TrialID].FinishedAt == nil
}

// revive gives abandoned attempts back to the host that has them, instead of
// the attempts that wait.
func (l *Ledger) revive(wanted func(a *berth.Attempt) bool) {
	for _, r := range l.requests {
		if r.state != berth.RequestWaiting {
			continue
		}

		for _, a := range l.attempts {
			lease := l.leases[a.ID]
			if a.TrialID != r.TrialID || a.Number >= r.Number || !l.revivable(a) || !wanted(a) ||
				lease.State != berth.LeaseHeld || lease.ExpiresAt.Before(l.now().Add(berth.LeaseTerm-berth.ReviveWithin)) {
				continue
			}

			r.state, r.revives = berth.RequestPlaced, a.ID
			a.State, a.Token, a.Kind, a.Message, a.FinishedAt = berth.AttemptPlaced, lease.Token, "", "", nil

			if a.StartedAt != nil {
				a.State = berth.AttemptRunning
			}
		}
	}
}

// Result is the one result of an attempt, if any.
func (l *Ledger) Result(attemptID string) (berth.Result, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	r, found := l.results[attemptID]

	return r, found
}

// Snapshot is the ledger at one moment, for checks.
type Snapshot struct {
	Hosts    []berth.Host
	Attempts []berth.Attempt
	Leases   []berth.Lease // also released ones
}

// Snapshot returns everything that invariants are about, in no order.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()

	var s Snapshot

	for _, h := range l.hosts {
		s.Hosts = append(s.Hosts, *h)
	}

	for _, a := range l.attempts {
		s.Attempts = append(s.Attempts, *a)
	}

	for _, lease := range l.leases {
		s.Leases = append(s.Leases, lease.Lease)
	}

	return s
}
