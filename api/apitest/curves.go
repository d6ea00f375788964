package apitest

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/timeline"
)

// Curves is api.Records.
func (s *Store) Curves(_ context.Context, sweepID, name string, numbers []int, most int) ([]berth.Curve, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var curves []berth.Curve

	for _, t := range s.Trials {
		latest := s.latest(t.ID)
		if t.SweepID != sweepID || latest == nil || !slices.Contains(numbers, t.Number) {
			continue
		}

		c := berth.Curve{TrialNumber: t.Number, TrialState: t.State, AttemptID: latest.ID}
		thinner := timeline.NewThinner(0, 100, most)

		for _, m := range s.Metrics[latest.ID] {
			switch {
			case m.Name != name:
			case m.Status == berth.MetricFinite:
				thinner.Add(berth.CurvePoint{Step: m.Step, Value: m.Value})
			default:
				c.NotFinite, c.FirstBad = c.NotFinite+1, m.Step
			}
		}

		c.Points, c.Total = thinner.Points(), thinner.Total()
		curves = append(curves, c)
	}

	return curves, nil
}

// MetricNames is api.Records.
func (s *Store) MetricNames(_ context.Context, sweepID string) ([]berth.MetricName, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var names []berth.MetricName

	for _, t := range s.Trials {
		latest := s.latest(t.ID)
		if t.SweepID != sweepID || latest == nil {
			continue
		}

		last := make(map[string]int64)
		for _, m := range s.Metrics[latest.ID] {
			last[m.Name] = max(last[m.Name], m.Step)
		}

		for name, step := range last {
			i := slices.IndexFunc(names, func(n berth.MetricName) bool { return n.Name == name })
			if i < 0 {
				i, names = len(names), append(names, berth.MetricName{Name: name})
			}

			names[i].Trials++
			names[i].LastStep = max(names[i].LastStep, step)
		}
	}

	slices.SortFunc(names, func(a, b berth.MetricName) int { return cmp.Compare(a.Name, b.Name) })

	return names, nil
}
