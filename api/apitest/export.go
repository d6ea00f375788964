package apitest

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthml/berth"
)

// ExportTrials is api.Trials. Every attempt counts: the store knows no short probes.
func (s *Store) ExportTrials(_ context.Context, sweepID string, f berth.TrialFilter, after, limit int) ([]berth.ExportedTrial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var all []berth.ExportedTrial

	for _, t := range take(s.Trials, limit, func(t berth.Trial) bool { return t.SweepID == sweepID && t.Number > after && matches(f, t) }) {
		out := berth.ExportedTrial{Trial: t, Counts: s.newest(t.ID)}

		for _, h := range s.Hosts {
			if out.Counts != nil && h.ID == out.Counts.HostID {
				out.HostName = h.Name
			}
		}

		all = append(all, out)
	}

	return all, nil
}

// ExportMetrics is api.Records.
func (s *Store) ExportMetrics(_ context.Context, sweepID string, after berth.MetricKey, limit int) ([]berth.ExportedMetric, *berth.MetricKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var all []berth.ExportedMetric

	for _, t := range s.Trials {
		for _, a := range s.Attempts {
			if t.SweepID != sweepID || a.TrialID != t.ID {
				continue
			}

			for _, p := range s.Metrics[a.ID] {
				all = append(all, berth.ExportedMetric{
					MetricPoint: p, TrialNumber: t.Number, AttemptNumber: a.Number, Counts: s.newest(t.ID).ID == a.ID,
				})
			}
		}
	}

	compare := func(a, b berth.MetricKey) int {
		return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Step, b.Step))
	}
	slices.SortFunc(all, func(a, b berth.ExportedMetric) int { return compare(a.Key(), b.Key()) })

	points := take(all, limit, func(m berth.ExportedMetric) bool { return compare(m.Key(), after) > 0 })
	if len(points) < limit {
		return points, nil, nil
	}

	return points, new(points[limit-1].Key()), nil
}

// newest is a trial's newest attempt; nil = it had none.
func (s *Store) newest(trialID string) *berth.Attempt {
	var found *berth.Attempt

	for i, a := range s.Attempts {
		if a.TrialID == trialID && (found == nil || a.Number > found.Number) {
			found = new(s.Attempts[i])
		}
	}

	return found
}
