package runtrial

import (
	"context"
	"maps"
	"slices"

	"github.com/berthml/berth"
)

// fallback is what the shim reports in place of the script. The script's own
// word wins, so that a script that reports gets what it got without the shim:
//
//   - once it reports the objective, or anything in a sweep without one, nothing
//     of the shim counts any more;
//   - of a metric that it reports, nothing of the shim counts.
//
// Rows of the shim that are in the database by then are dropped before the
// script's own go there. The two never mix under one name.
type fallback struct {
	objective string // the metric by which trials are ranked; empty = the sweep has none
	live      bool   // stored while the job runs; else at its end, when all is known

	silent    bool // the script reports by itself
	histories map[string]*history
	waiting   []berth.MetricPoint // until the end
	given     map[string]bool     // names of which the database may have rows
	drop      []string            // of these it must lose them
}

// maxWaiting bounds what waits for the end: ten metrics for a thousand epochs.
// Of more, the newest stay.
const maxWaiting = 10_000

func newFallback(o *berth.Objective, live bool) *fallback {
	f := &fallback{live: live, histories: make(map[string]*history), given: make(map[string]bool)}
	if o != nil {
		f.objective = o.Metric
	}

	return f
}

// addShim takes in what the shim reports.
func (s *series) addShim(points ...berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, p := range points {
		if s.shim == nil || s.shim.silent || s.byName[p.Name] != nil {
			continue
		}

		h := s.shim.histories[p.Name]
		if h == nil {
			if len(s.byName)+len(s.shim.histories) >= maxNames && p.Name != s.needed {
				s.more = true

				continue
			}

			h = &history{}
			s.shim.histories[p.Name] = h
		}

		h.add(p)

		if !s.shim.live {
			s.shim.waiting = append(s.shim.waiting, p)
			s.shim.waiting = s.shim.waiting[max(len(s.shim.waiting)-maxWaiting, 0):]

			continue
		}

		s.shim.given[p.Name] = true // by an earlier run that read the same, maybe
		if s.thin.add(p) {
			s.queue = append(s.queue, p)
		}
	}
}

// overrule takes back what the shim reported, when the script first reports a
// metric. The caller holds s.mu, and has not taken that report in.
func (s *series) overrule(name string) {
	if s.shim == nil || s.shim.silent {
		return
	}

	names := []string{name}
	if s.shim.objective == "" || s.shim.objective == name {
		s.shim.silent, s.shim.waiting = true, nil
		names = slices.Collect(maps.Keys(s.shim.histories))
	}

	for _, name := range names {
		delete(s.shim.histories, name)
		delete(s.thin.held, name)
		s.queue = slices.DeleteFunc(s.queue, func(p berth.MetricPoint) bool { return p.Name == name })

		if s.shim.given[name] {
			s.shim.drop = append(s.shim.drop, name)
			delete(s.shim.given, name)
		}
	}
}

// reported is what counts of a metric: the script's word, else the shim's. Nil =
// nobody reported it. The caller holds s.mu.
func (s *series) reported(name string) *history {
	if h := s.byName[name]; h != nil || s.shim == nil {
		return h
	}

	return s.shim.histories[name]
}

// releaseShim lets what waited for the end go. The caller holds s.mu.
func (s *series) releaseShim() {
	if s.shim == nil {
		return
	}

	for _, p := range s.shim.waiting {
		if s.byName[p.Name] == nil && s.thin.add(p) {
			s.queue = append(s.queue, p)
		}
	}

	s.shim.waiting = nil
}

// batch is what is to be stored at once: first names lose their points, then
// points are put.
type batch struct {
	drop   []string
	points []berth.MetricPoint
	shim   []string // names of which the points are the shim's
}

// shimReports says whether the shim reports a metric that the script has not reported.
func (s *series) shimReports(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.shim != nil && s.shim.histories[name] != nil
}

// taken makes a batch of points. The caller holds s.mu.
func (s *series) taken(points []berth.MetricPoint) batch {
	b := batch{points: points, drop: s.drop}
	s.drop = nil

	if s.shim == nil {
		return b
	}

	b.drop, s.shim.drop = append(b.drop, s.shim.drop...), nil

	for _, p := range points {
		if s.shim.histories[p.Name] != nil && !slices.Contains(b.shim, p.Name) {
			b.shim = append(b.shim, p.Name)
		}
	}

	return b
}

// restored returns the points of a batch that are still to be stored. The caller
// holds s.mu.
func (s *series) restored(b batch) []berth.MetricPoint {
	points := slices.DeleteFunc(b.points, func(p berth.MetricPoint) bool { return slices.Contains(s.drop, p.Name) })
	s.drop = append(b.drop, s.drop...)

	if s.shim == nil {
		return points
	}

	return slices.DeleteFunc(points, func(p berth.MetricPoint) bool {
		return slices.Contains(b.shim, p.Name) && s.shim.histories[p.Name] == nil
	})
}

// putMetrics stores a batch, and takes out of it what it has stored.
func (r *run) putMetrics(ctx context.Context, b *batch) error {
	attempt, token := r.who.Attempt.ID, r.order.Token

	if len(b.drop) > 0 {
		if err := r.records.DropMetrics(ctx, attempt, token, b.drop); err != nil {
			return err
		}

		b.drop = nil
	}

	for len(b.points) > 0 {
		some := b.points[:min(len(b.points), pointsAtOnce)]
		if err := r.records.PutMetrics(ctx, attempt, token, some); err != nil {
			return err
		}

		b.points = b.points[len(some):]
	}

	return nil
}
