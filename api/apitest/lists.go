package apitest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// PageSweeps is api.Sweeps.
func (s *Store) PageSweeps(_ context.Context, q berth.SweepQuery) (berth.Page[berth.Sweep], error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	list := slices.DeleteFunc(slices.Clone(s.Sweeps), func(sweep berth.Sweep) bool {
		return !wanted(q.States, sweep.State) || q.CreatedBy != "" && sweep.CreatedBy != q.CreatedBy ||
			!strings.Contains(strings.ToLower(sweep.Name), strings.ToLower(q.Name))
	})

	slices.SortFunc(list, func(a, b berth.Sweep) int {
		made := cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))

		switch q.Sort.By {
		case berth.SortName:
			return directed(q.Sort, cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.ID, b.ID)))
		case berth.SortFinishedAt:
			if a.FinishedAt == nil || b.FinishedAt == nil {
				return cmp.Or(keyless(a.FinishedAt == nil, b.FinishedAt == nil), -made)
			}

			return directed(q.Sort, cmp.Or(a.FinishedAt.Compare(*b.FinishedAt), strings.Compare(a.ID, b.ID)))
		default:
			return directed(q.Sort, made)
		}
	})

	return pageOf(list, q.After, q.Limit, func(sweep berth.Sweep) string { return sweep.ID }), nil
}

func matches(f berth.TrialFilter, t berth.Trial) bool {
	return wanted(f.States, t.State) &&
		(f.ValueMin == nil || t.Value != nil && *t.Value >= *f.ValueMin) && (f.ValueMax == nil || t.Value != nil && *t.Value <= *f.ValueMax)
}

// PageTrials is api.Trials.
func (s *Store) PageTrials(_ context.Context, sweepID string, q berth.TrialQuery) (berth.Page[berth.ListedTrial], error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	list := slices.DeleteFunc(slices.Clone(s.Trials), func(t berth.Trial) bool {
		return t.SweepID != sweepID || !matches(q.TrialFilter, t)
	})

	slices.SortFunc(list, func(a, b berth.Trial) int { return trialOrder(q.Sort, a, b) })

	rows := make([]berth.ListedTrial, len(list))
	for i, t := range list {
		rows[i] = berth.ListedTrial{Trial: t, Latest: s.latest(t.ID)}
		if t.State == berth.TrialWaiting {
			rows[i].WaitingSince = &t.CreatedAt
		}
	}

	return pageOf(rows, q.After, q.Limit, func(t berth.ListedTrial) string { return t.ID }), nil
}

func trialOrder(s berth.Sort, a, b berth.Trial) int {
	number := cmp.Compare(a.Number, b.Number)

	switch s.By {
	case berth.SortValue:
		if a.Value == nil || b.Value == nil {
			return cmp.Or(keyless(a.Value == nil, b.Value == nil), number)
		}

		return cmp.Or(directed(s, cmp.Compare(*a.Value, *b.Value)), number)
	case berth.SortDuration:
		x, y := took(a), took(b)

		return cmp.Or(keyless(x < 0, y < 0), keyless(a.State != berth.TrialSucceeded, b.State != berth.TrialSucceeded), directed(s, cmp.Compare(x, y)), number)
	default:
		return directed(s, number)
	}
}

// took is below 0 for a trial that did not run from a start to an end.
func took(t berth.Trial) time.Duration {
	if t.StartedAt == nil || t.FinishedAt == nil {
		return -1
	}

	return t.FinishedAt.Sub(*t.StartedAt)
}

func (s *Store) latest(trialID string) (latest *berth.LatestAttempt) {
	for _, a := range s.Attempts {
		if a.TrialID != trialID || latest != nil && latest.Number > a.Number {
			continue
		}

		latest = &berth.LatestAttempt{
			ID: a.ID, Number: a.Number, State: a.State, Purpose: a.Purpose, HostID: a.HostID, DeviceID: a.DeviceID,
			MemoryBytes: a.Demand.MemoryBytes, DeviceBytes: a.Demand.DeviceBytes,
			MemoryPeakBytes: a.Usage.MemoryPeakBytes, DevicePeakBytes: a.Usage.DevicePeakBytes,
		}

		for _, h := range s.Hosts {
			if h.ID == a.HostID {
				latest.HostName = h.Name
			}
		}

		if points := s.Metrics[a.ID]; len(points) > 0 {
			latest.Metric = &points[len(points)-1]
		}
	}

	return latest
}

func directed(s berth.Sort, order int) int {
	if s.Descending {
		return -order
	}

	return order
}

// keyless puts rows without a key behind rows with one.
func keyless(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// pageOf takes a page of a sorted list. Its positions are ids of rows.
func pageOf[T any](list []T, after *berth.Position, limit int, id func(T) string) berth.Page[T] {
	rest := list
	if after != nil {
		rest = list[slices.IndexFunc(list, func(row T) bool { return id(row) == after.Tie })+1:]
	}

	page := berth.Page[T]{Rows: rest[:min(len(rest), limit)], Total: len(list)}
	if len(page.Rows) == limit {
		page.Next = &berth.Position{Tie: id(page.Rows[limit-1])}
	}

	return page
}

// ListMachine is api.Hosts: all points, for any interval.
func (s *Store) ListMachine(_ context.Context, hostID string, _, _ time.Duration) ([]berth.MachinePoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.Machines[hostID]), nil
}

// ListLeases is api.Hosts.
func (s *Store) ListLeases(_ context.Context, after berth.LeaseKey, limit int) ([]berth.HeldLease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return behind(s.Leases, after, limit, berth.HeldLease.Key), nil
}

// ListQueue is api.Hosts.
func (s *Store) ListQueue(_ context.Context, after berth.QueueKey, limit int) ([]berth.QueuedRequest, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return behind(s.Queued, after, limit, berth.QueuedRequest.Key), len(s.Queued), nil
}

// behind returns up to limit rows behind the one with a key; for the zero key,
// from the first.
func behind[T any, K comparable](rows []T, after K, limit int, key func(T) K) []T {
	rest := rows[slices.IndexFunc(rows, func(row T) bool { return key(row) == after })+1:]

	return rest[:min(len(rest), limit)]
}
