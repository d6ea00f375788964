package metrics

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/masking"
)

// SourcesOf returns the sources of a sweep's metrics in order of precedence: the metrics file,
// the shim, and what the job prints; or the one that the sweep names, then the shim.
func SourcesOf(spec berth.Spec) (sources []string) {
	switch source := spec.Metrics.Source; source {
	case berth.MetricsStdout, berth.MetricsTensorBoard:
		sources = []string{source}
	default:
		sources = []string{berth.MetricsFile}
	}

	if spec.WantsShim() {
		sources = append(sources, berth.MetricsShim)
	}

	if spec.Metrics.Source == berth.MetricsAuto {
		sources = append(sources, berth.MetricsStdout)
	}

	return sources
}

// maxWaiting bounds the points of a source that wait for the end, ten metrics for a thousand
// epochs; the newest stay.
const maxWaiting = 10_000

// Series is what an attempt reports. One source is chosen, once, and its points are stored as they
// come. The points of the others wait for the end.
type Series struct {
	mu      sync.Mutex
	order   []string // the sources that are read, in order of precedence
	sources map[string]*sourceReports
	chosen  string // whose points are stored; empty = none yet
	queue   []berth.MetricPoint
	drop    []string // names whose stored points must be deleted
	thin    *Thinner
	more    bool          // there were more names than MaxNames
	needed  string        // the metric by which trials are ranked; empty = there is none
	ended   bool          // nothing is held back any more
	mask    *masking.Mask // hides secrets in names; nil = there are none

	// Hear is told each value of the needed metric of the chosen source, in order, also of one
	// that was thinned. Nil = none listens.
	Hear func(source string, p berth.MetricPoint)
}

// sourceReports are what one source reported.
type sourceReports struct {
	histories map[string]*history
	waiting   []berth.MetricPoint // of one that is not chosen
	speaks    bool                // it will report metrics: the sources behind it wait
}

// NewSeries is empty. needed is the metric by which trials are ranked, if any; the sources are
// in order of precedence.
func NewSeries(thin *Thinner, mask *masking.Mask, needed string, sources ...string) *Series {
	s := &Series{thin: thin, mask: mask, needed: needed, order: sources, sources: make(map[string]*sourceReports)}
	for _, source := range sources {
		s.sources[source] = &sourceReports{histories: make(map[string]*history)}
	}

	return s
}

// Add takes in what a source reports.
func (s *Series) Add(from string, points ...berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.sources[from]

	for _, p := range points {
		p.Name = s.mask.Name(p.Name)

		h := r.histories[p.Name]
		if h == nil {
			if s.known() >= MaxNames && p.Name != s.needed {
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
func (s *Series) chooseFirst() {
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
func (s *Series) choose(source string) {
	r := s.sources[source]
	s.chosen = source

	for _, p := range r.waiting {
		s.send(p)
	}

	r.waiting = nil
}

// GoOn chooses the source that an earlier run chose; empty = it chose none.
func (s *Series) GoOn(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.sources[source] != nil {
		s.choose(source)
	}
}

// Expect says that a source will report metrics: those behind it wait.
func (s *Series) Expect(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.sources[source].speaks = true
}

// Chosen names the source whose points are stored; empty = none yet.
func (s *Series) Chosen() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.chosen
}

// Needed is the metric by which trials are ranked; empty = there is none.
func (s *Series) Needed() string { return s.needed }

// known is how many names there are. The caller holds s.mu.
func (s *Series) known() (n int) {
	for _, r := range s.sources {
		n += len(r.histories)
	}

	return n
}

// send queues a point, unless too many come. The caller holds s.mu.
func (s *Series) send(p berth.MetricPoint) {
	if s.Hear != nil && p.Name == s.needed && !p.Final {
		s.Hear(s.chosen, p)
	}

	if s.thin.add(p) {
		s.queue = append(s.queue, p)
	}
}

// Forget drops what a source reported of a metric: it was another metric.
func (s *Series) Forget(from, name string) {
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
func (s *Series) dropCurve(name string) {
	delete(s.thin.held, name)
	s.queue = slices.DeleteFunc(s.queue, func(p berth.MetricPoint) bool { return p.Name == name })
	s.drop = append(s.drop, name)
}

// Reset forgets what a source reported, but not the points that are stored: the job writes its file
// again from the start.
func (s *Series) Reset(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.sources[from]
	r.histories, r.waiting = make(map[string]*history), nil
}

// reported returns a metric's history and source: the first source that reports it. Nil = none
// does. The caller holds s.mu.
func (s *Series) reported(name string) (*history, string) {
	for _, source := range s.order {
		if h := s.sources[source].histories[name]; h != nil {
			return h, source
		}
	}

	return nil, ""
}

// Source names the source that reports a metric; empty when none does.
func (s *Series) Source(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	_, source := s.reported(name)

	return source
}

// Names are those of the metrics, ascending.
func (s *Series) Names() []string {
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

// Any reports whether anything was reported.
func (s *Series) Any() bool { return len(s.Names()) > 0 }

// End queues the points that waited: for each metric that the chosen source lacks, the points of the
// first source that has it. A source before the chosen one that has the objective came too late
// to be chosen; its curve replaces the other.
func (s *Series) End() {
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

// Notes say what was left out.
func (s *Series) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var notes []string

	if s.more {
		notes = append(notes, fmt.Sprintf("it reported more than %d metrics by name; the others were left out", MaxNames))
	}

	if note := s.thin.note(); note != "" {
		notes = append(notes, note)
	}

	return notes
}

// Batch is what is to be stored at once: first names lose their points, then points are put.
type Batch struct {
	Drop   []string
	Points []berth.MetricPoint
}

// Pending takes what is not stored yet.
func (s *Series) Pending(now time.Time) Batch {
	s.mu.Lock()
	defer s.mu.Unlock()

	b := Batch{Drop: s.drop, Points: append(s.queue, s.thin.release(now, s.ended)...)}
	s.queue, s.drop = nil, nil

	return b
}

// Restore puts a batch back in front, after it could not be stored.
func (s *Series) Restore(b Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()

	dropped := func(p berth.MetricPoint) bool { return slices.Contains(s.drop, p.Name) } // since the batch was taken
	s.queue = slices.Concat(slices.DeleteFunc(b.Points, dropped), s.queue)
	s.drop = append(b.Drop, s.drop...)
}

// Objective returns the value that counts for the trial: a final record's, or the last, best
// or mean one. status is empty when the metric was never reported, and other than finite when
// there is no number to rank.
func (s *Series) Objective(o berth.Objective) (value *float64, status berth.MetricStatus) {
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

// ReportedAt is when the only report that counts was made: a final record, or the last one,
// which others may have followed. It is zero when several count, or none was made.
func (s *Series) ReportedAt(o berth.Objective) (at time.Time, final bool) {
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
