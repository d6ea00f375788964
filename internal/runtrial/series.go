package runtrial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/masking"
	"github.com/berthml/berth/internal/metrics"
)

// maxWaiting bounds what waits for the end of each source: ten metrics for a thousand epochs.
// Of more, the newest stay.
const maxWaiting = 10_000

// series is all an attempt reported, as far as its objective needs it. One source is chosen,
// once, and its points are stored as they come. What the others report waits for the end.
type series struct {
	mu      sync.Mutex
	order   []string // the sources that are read, the first before the others
	sources map[string]*sourceReports
	chosen  string // whose points are stored; empty = none yet
	queue   []berth.MetricPoint
	drop    []string // names of which the database must lose the points that it has
	thin    *thinner
	more    bool          // there were more names than metrics.MaxNames
	needed  string        // the metric by which trials are ranked; empty = there is none
	ended   bool          // nothing is held back any more
	mask    *masking.Mask // of what no name may hold
}

// sourceReports are what one source reported.
type sourceReports struct {
	histories map[string]*history
	waiting   []berth.MetricPoint // of one that is not chosen
	speaks    bool                // it will report metrics: the sources behind it wait
}

// newSeries is empty. needed is the metric by which trials are ranked, if any; the sources are
// those that are read, the first before the others.
func newSeries(thin *thinner, needed string, sources ...string) *series {
	s := &series{thin: thin, needed: needed, order: sources, sources: make(map[string]*sourceReports)}
	for _, source := range sources {
		s.sources[source] = &sourceReports{histories: make(map[string]*history)}
	}

	return s
}

// add takes in what a source reports.
func (s *series) add(from string, points ...berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.sources[from]

	for _, p := range points {
		p.Name = s.mask.Name(p.Name)

		h := r.histories[p.Name]
		if h == nil {
			if s.known() >= metrics.MaxNames && p.Name != s.needed {
				s.more = true

				continue
			}

			h = &history{}
			r.histories[p.Name] = h
		}

		h.add(p)

		if s.chosen == from {
			s.send(p)
		} else {
			r.waiting = append(r.waiting, p)
			r.waiting = r.waiting[max(len(r.waiting)-maxWaiting, 0):]
		}
	}

	s.chooseFirst()
}

// chooseFirst chooses the first source that reports what trials are ranked by, unless one
// before it speaks. The caller holds s.mu.
func (s *series) chooseFirst() {
	if s.chosen != "" {
		return
	}

	for _, source := range s.order {
		r := s.sources[source]
		if h := r.histories[s.needed]; h != nil && h.status != "" || s.needed == "" && len(r.histories) > 0 {
			s.choose(source)

			return
		}

		if r.speaks {
			return
		}
	}
}

// choose chooses a source. The caller holds s.mu.
func (s *series) choose(source string) {
	r := s.sources[source]
	s.chosen = source

	for _, p := range r.waiting {
		s.send(p)
	}

	r.waiting = nil
}

// goOn chooses the source that an earlier run chose; empty = it chose none.
func (s *series) goOn(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.sources[source] != nil {
		s.choose(source)
	}
}

// speaks says that a source will report metrics: those behind it wait.
func (s *series) speaks(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.sources[source].speaks = true
}

// isChosen reports whether a source is chosen.
func (s *series) isChosen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.chosen != ""
}

// known is how many names there are. The caller holds s.mu.
func (s *series) known() (n int) {
	for _, r := range s.sources {
		n += len(r.histories)
	}

	return n
}

// send queues a point, unless too many come. The caller holds s.mu.
func (s *series) send(p berth.MetricPoint) {
	if s.thin.add(p) {
		s.queue = append(s.queue, p)
	}
}

// forget drops what a source reported of a metric: it was another one.
func (s *series) forget(from, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	other := func(p berth.MetricPoint) bool { return p.Name == name }
	r := s.sources[from]
	delete(r.histories, name)
	r.waiting = slices.DeleteFunc(r.waiting, other)

	if s.chosen == from {
		s.dropCurve(name)
	}
}

// dropCurve takes back the points of a metric. The caller holds s.mu.
func (s *series) dropCurve(name string) {
	delete(s.thin.held, name)
	s.queue = slices.DeleteFunc(s.queue, func(p berth.MetricPoint) bool { return p.Name == name })
	s.drop = append(s.drop, name)
}

// reset forgets what a source reported, but for its points: the file is written anew.
func (s *series) reset(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.sources[from]
	r.histories, r.waiting = make(map[string]*history), nil
}

// reported is what counts of a metric, and whose word it is: the first source's that reports
// it. Nil = nobody did. The caller holds s.mu.
func (s *series) reported(name string) (*history, string) {
	for _, source := range s.order {
		if h := s.sources[source].histories[name]; h != nil {
			return h, source
		}
	}

	return nil, ""
}

// source names the source that reports a metric; empty when none does.
func (s *series) source(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	_, source := s.reported(name)

	return source
}

// names are those of the metrics, ascending.
func (s *series) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	names := make(map[string]bool)

	for _, r := range s.sources {
		for name := range r.histories {
			names[name] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// any reports whether anything was reported.
func (s *series) any() bool { return len(s.names()) > 0 }

// end lets everything go that waited: of each metric that the chosen source lacks, the points
// of the first that has it. A source before the chosen one that has the objective came too
// late to be chosen; its curve takes the place of the other.
func (s *series) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	taken := make(map[string]bool)

	if r := s.sources[s.chosen]; r != nil {
		for name := range r.histories {
			taken[name] = true
		}
	}

	if h, source := s.reported(s.needed); h != nil && h.status != "" && source != s.chosen && taken[s.needed] {
		s.dropCurve(s.needed)
		delete(taken, s.needed)
	}

	for _, source := range s.order {
		r := s.sources[source]
		for _, p := range r.waiting {
			if !taken[p.Name] {
				s.send(p)
			}
		}

		for name := range r.histories {
			taken[name] = true
		}

		r.waiting = nil
	}

	s.ended = true
}

// notes say what was left out.
func (s *series) notes(b Bounds) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var notes []string

	if s.more {
		notes = append(notes, fmt.Sprintf("it reported more than %d metrics by name; the others were left out", metrics.MaxNames))
	}

	return appendNote(notes, s.thin.note(b))
}

// batch is what is to be stored at once: first names lose their points, then points are put.
type batch struct {
	drop   []string
	points []berth.MetricPoint
}

// pending takes what is not stored yet.
func (s *series) pending() batch {
	s.mu.Lock()
	defer s.mu.Unlock()

	b := batch{drop: s.drop, points: append(s.queue, s.thin.release(time.Now(), s.ended)...)}
	s.queue, s.drop = nil, nil

	return b
}

// restore puts a batch back in front, after it could not be stored.
func (s *series) restore(b batch) {
	s.mu.Lock()
	defer s.mu.Unlock()

	dropped := func(p berth.MetricPoint) bool { return slices.Contains(s.drop, p.Name) } // since the batch was taken
	s.queue = slices.Concat(slices.DeleteFunc(b.points, dropped), s.queue)
	s.drop = append(b.drop, s.drop...)
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

// objective returns the value that counts for the trial: a final record's, or the last, best
// or mean one. status is empty when the metric was never reported, and other than finite when
// there is no number to rank.
func (s *series) objective(o berth.Objective) (value *float64, status berth.MetricStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()

	h, _ := s.reported(o.Metric)
	if h == nil {
		return nil, ""
	}

	number, status := h.last, h.status

	switch {
	case h.final != nil:
		number, status = h.final.Value, h.final.Status
	case h.finite == 0 || o.Strategy == berth.StrategyLast || o.Strategy == "":
	case o.Strategy == berth.StrategyMean:
		number, status = h.sum/float64(h.finite), berth.MetricFinite
	case o.Goal == berth.GoalMinimize:
		number, status = h.min, berth.MetricFinite
	default:
		number, status = h.max, berth.MetricFinite
	}

	if status != berth.MetricFinite {
		return nil, status
	}

	return &number, status
}

// reportedAt is when the only report that counts was made: a final record, or the last one,
// which others may have followed. It is zero when several count, or none was made.
func (s *series) reportedAt(o berth.Objective) (at time.Time, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	h, _ := s.reported(o.Metric)

	switch {
	case h == nil:
		return time.Time{}, false
	case h.final != nil:
		return h.final.At, true
	case o.Strategy == berth.StrategyLast || o.Strategy == "":
		return h.at, false
	default:
		return time.Time{}, false
	}
}
