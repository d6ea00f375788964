package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/berthml/berth"
)

// RequestPlacement asks for a place and returns the state of the request.
func (l *Ledger) RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error) {
	err := l.do(ctx, "RequestPlacement", r.AttemptID, func() error {
		if _, known := l.trials[r.TrialID]; !known || r.Demand.MemoryBytes <= 0 || r.Demand.CPUMilli <= 0 {
			return berth.Errorf(berth.KindInternal, "a constraint is violated")
		}

		if l.requests[r.AttemptID] == nil {
			l.requests[r.AttemptID] = &request{PlacementRequest: r, state: berth.RequestWaiting}
			l.fenceEarlier(r)
			l.revive(func(a *berth.Attempt) bool {
				return a.TrialID == r.TrialID && l.hosts[a.HostID].Problem == ""
			})
		}

		return nil
	})
	if err != nil {
		return berth.PlacementStatus{}, err
	}

	return l.PlacementStatus(ctx, r.AttemptID)
}

// PlacementStatus returns the state of a request. Errors: not_found.
func (l *Ledger) PlacementStatus(ctx context.Context, attemptID string) (status berth.PlacementStatus, err error) {
	err = l.do(ctx, "PlacementStatus", attemptID, func() error {
		r := l.requests[attemptID]
		if r == nil {
			return berth.Errorf(berth.KindNotFound, "no such row")
		}

		status = berth.PlacementStatus{AttemptID: cmp.Or(r.revives, attemptID), State: r.state}
		if a := l.attempts[status.AttemptID]; a != nil {
			status.Short = l.requests[status.AttemptID].Short
			status.HostID, status.Token, status.Demand = a.HostID, a.Token, a.Demand
			status.HostName = l.hosts[a.HostID].Name
		}

		return nil
	})

	return status, err
}

// Place turns waiting requests into attempts with leases and books their hosts, all or nothing. Errors: exhausted
// when a host would hold more than it has; conflict when a trial has a live attempt already.
func (l *Ledger) Place(ctx context.Context, decisions map[string]berth.Placement) (placed []string, err error) {
	err = l.do(ctx, "Place", "", func() error {
		booked := map[string]berth.Host{}
		live := map[string]bool{}

		for _, a := range l.attempts {
			if !over(a) {
				live[a.TrialID] = true
			}
		}

		for _, id := range slices.Sorted(maps.Keys(decisions)) {
			r := l.requests[id]
			if r == nil || r.state != berth.RequestWaiting {
				continue
			}

			host, there := booked[decisions[id].HostID]
			if known := l.hosts[decisions[id].HostID]; !there && known != nil {
				host, there = *known, true
			}

			if !there {
				return berth.Errorf(berth.KindInternal, "no host %s", decisions[id].HostID)
			}

			host.MemoryReservedBytes += decisions[id].Demand.MemoryBytes
			host.CPUMilliReserved += decisions[id].Demand.CPUMilli
			host.Attempts++

			if !holds(host) {
				return berth.Errorf(berth.KindExhausted, "the database refused to book more than there is")
			}

			if live[r.TrialID] {
				return berth.Errorf(berth.KindConflict, "trial %s has a live attempt", r.TrialID)
			}

			live[r.TrialID] = true
			booked[host.ID] = host
			placed = append(placed, id)
		}

		for _, id := range placed {
			l.book(l.requests[id], decisions[id])
		}

		for id, host := range booked {
			*l.hosts[id] = host
		}

		return nil
	})
	if err != nil {
		placed = nil
	}

	return placed, err
}

// holds is the CHECK of the hosts.
func holds(h berth.Host) bool {
	return 0 <= h.MemoryReservedBytes && h.MemoryReservedBytes <= h.CapacityBytes() &&
		0 <= h.CPUMilliReserved && h.CPUMilliReserved <= h.CPUMilli &&
		0 <= h.Attempts && (h.MaxAttempts == 0 || h.Attempts <= h.MaxAttempts)
}

func (l *Ledger) book(r *request, p berth.Placement) {
	l.tokens++
	r.state, r.Demand = berth.RequestPlaced, p.Demand
	l.attempts[r.AttemptID] = &berth.Attempt{
		ID: r.AttemptID, TrialID: r.TrialID, Number: r.Number, Stage: r.Stage, Purpose: r.Purpose, ShapeKey: r.ShapeKey, State: berth.AttemptPlaced,
		HostID: p.HostID, Class: cmp.Or(p.Class, berth.ClassCPU), Token: l.tokens, Demand: r.Demand, PlacedAt: l.now(),
	}

	l.leases[r.AttemptID] = &lease{number: l.tokens, created: l.now(), Lease: berth.Lease{
		ID: "lease-of-" + r.AttemptID, AttemptID: r.AttemptID, HostID: p.HostID, Demand: r.Demand, Token: l.tokens,
		State: berth.LeaseHeld, ExpiresAt: l.now().Add(berth.LeaseTerm),
	}}
}

func over(a *berth.Attempt) bool {
	return a.State == berth.AttemptFinished || a.State == berth.AttemptAbandoned
}
