package fake

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// SuspectLeases marks leases that were not renewed in time. They keep their
// bookings. It returns the attempts concerned.
func (l *Ledger) SuspectLeases(ctx context.Context) (ids []string, err error) {
	err = l.do(ctx, "SuspectLeases", "", func() error {
		for id, lease := range l.leases {
			if lease.State == berth.LeaseHeld && lease.ExpiresAt.Before(l.now()) {
				lease.State = berth.LeaseSuspect
				ids = append(ids, id)
			}
		}

		return nil
	})

	return ids, err
}

// ReleaseLease frees a lease's booking, once, on proof.
func (l *Ledger) ReleaseLease(ctx context.Context, attemptID, proof string) error {
	return l.hooked().ReleaseLease.do(ctx, attemptID, l.step("ReleaseLease", attemptID, func() error { return l.release(attemptID, proof) }))
}

var errNoProof = berth.Errorf(berth.KindInternal, "a lease is released with proof only")

// release frees the lease of an ended attempt, in the caller's transaction.
func (l *Ledger) release(attemptID, proof string) error {
	lease := l.leases[attemptID]
	if lease == nil || lease.State == berth.LeaseReleased || !over(l.attempts[attemptID]) {
		return nil
	}

	if proof == "" {
		return errNoProof
	}

	host := l.hosts[lease.HostID]
	host.MemoryReservedBytes -= lease.Demand.MemoryBytes
	host.CPUMilliReserved -= lease.Demand.CPUMilli
	host.Attempts--
	l.fit(host)
	lease.State, lease.proof = berth.LeaseReleased, proof

	return nil
}

// HostLeases returns the unreleased leases of a host, oldest first.
func (l *Ledger) HostLeases(ctx context.Context, hostID string) ([]berth.HostLease, error) {
	return l.hooked().HostLeases.call(ctx, hostID, answer(l, "HostLeases", hostID, func() (leases []berth.HostLease, err error) {
		var open []*lease

		for _, lease := range l.leases {
			if lease.HostID == hostID && lease.State != berth.LeaseReleased {
				open = append(open, lease)
			}
		}

		slices.SortFunc(open, func(a, b *lease) int { return cmp.Compare(a.number, b.number) })

		for _, lease := range open {
			leases = append(leases, l.hostLease(lease))
		}

		return leases, nil
	}))
}

// LeasesOf returns the unreleased leases of these attempts, on any host.
func (l *Ledger) LeasesOf(ctx context.Context, attemptIDs []string) ([]berth.HostLease, error) {
	return l.hooked().LeasesOf.call(ctx, attemptIDs, answer(l, "LeasesOf", strings.Join(attemptIDs, " "), func() (leases []berth.HostLease, err error) {
		for _, id := range attemptIDs {
			if lease := l.leases[id]; lease != nil && lease.State != berth.LeaseReleased {
				leases = append(leases, l.hostLease(lease))
			}
		}

		return leases, nil
	}))
}

func (l *Ledger) hostLease(lease *lease) berth.HostLease {
	a := l.attempts[lease.AttemptID]

	return berth.HostLease{
		AttemptID: lease.AttemptID, SweepID: l.trials[a.TrialID].SweepID, TrialID: a.TrialID, TrialNumber: l.trials[a.TrialID].Number,
		Number: a.Number, Revivable: l.revivable(a), State: lease.State, Token: lease.Token, Current: a.Token, AttemptState: a.State,
		Age: l.now().Sub(lease.created),
	}
}
