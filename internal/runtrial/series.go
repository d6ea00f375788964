package runtrial

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// maxNames bounds how many metrics an attempt may have (reliability.md,
// failure 30); further names are dropped, but for the objective's.
const maxNames = 1000

// series is all an attempt reported, as far as its objective needs it.
type series struct {
	mu     sync.Mutex
	byName map[string]*history
	queue  []berth.MetricPoint // not in the database yet
	thin   *thinner
	more   bool      // there were more names than maxNames
	needed string    // the metric by which trials are ranked; empty = there is none
	ended  bool      // nothing is held back any more
	shim   *fallback // nil = there is no shim
	drop   []string  // names of which the database must lose the points that it has
}

// history is what is kept of one metric. Its figures are finite: a sum that is
// too large for a number is not written down.
type history struct {
	Last       float64            `json:"last"`
	LastStatus berth.MetricStatus `json:"last_status"`
	LastAt     time.Time          `json:"last_at,omitzero"`
	Min        float64            `json:"min"` // of the finite ones, like Max and Sum
	Max        float64            `json:"max"`
	Sum        float64            `json:"sum"`
	Finite     int                `json:"finite"` // how many there were
	Final      *berth.MetricPoint `json:"final,omitempty"`
}

// newSeries is empty. needed is the metric by which trials are ranked, if any.
func newSeries(thin *thinner, needed string) *series {
	return &series{byName: make(map[string]*history), thin: thin, needed: needed}
}

func (s *series) add(points ...berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, p := range points {
		h := s.byName[p.Name]
		if h == nil {
			if len(s.byName) >= maxNames && p.Name != s.needed {
				s.more = true

				continue
			}

			s.overrule(p.Name)

			h = &history{}
			s.byName[p.Name] = h
		}

		h.add(p)

		if s.thin.add(p) {
			s.queue = append(s.queue, p)
		}
	}
}

// addFrom adds what a parser found. Where it found what is more like the objective than
// what it took for it before, that is forgotten first.
func (s *series) addFrom(parser *lineParser, points []berth.MetricPoint) {
	if parser.turned {
		parser.turned = false
		s.forget(parser.objective)
	}

	s.add(points...)
	parser.sure = s.shimReports(parser.objective)
}

// forget drops what was reported of a metric.
func (s *series) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.byName, name)
	delete(s.thin.held, name)
	s.queue = slices.DeleteFunc(s.queue, func(p berth.MetricPoint) bool { return p.Name == name })
	s.drop = append(s.drop, name)
}

// any reports whether anything was reported.
func (s *series) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.byName) > 0 || s.shim != nil && len(s.shim.histories) > 0
}

// names are those of metrics that count, ascending.
func (s *series) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	names := slices.Collect(maps.Keys(s.byName))
	if s.shim != nil {
		names = slices.AppendSeq(names, maps.Keys(s.shim.histories)) // of a metric that the script reports it has none
	}

	slices.Sort(names)

	return names
}

// kept is all that is known, for another run to go on from.
func (s *series) kept() keptSeries {
	s.mu.Lock()
	defer s.mu.Unlock()

	kept := keptSeries{
		Histories: make(map[string]history, len(s.byName)), More: s.more,
		Kept: s.thin.kept, Lost: s.thin.lost, Held: maps.Clone(s.thin.held),
	}
	for name, h := range s.byName {
		kept.Histories[name] = *h
	}

	return kept
}

// resume goes on from what another run knew.
func (s *series) resume(k keptSeries, thin *thinner) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.more, s.thin = k.More, thin
	thin.kept, thin.lost = k.Kept, k.Lost

	for name, h := range k.Histories {
		s.overrule(name) // the script reported it: what the shim says of it counts no more
		s.byName[name] = &h
	}

	maps.Copy(thin.held, k.Held) // after overrule, which drops what is held of a name: these are the script's own
}

// end lets everything go that was held back.
func (s *series) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.releaseShim()
	s.ended = true
}

// notes say what was left out.
func (s *series) notes(b Bounds) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var notes []string

	if s.more {
		notes = append(notes, fmt.Sprintf("it reported more than %d metrics by name; the others were left out", maxNames))
	}

	if note := s.thin.note(b); note != "" {
		notes = append(notes, note)
	}

	return notes
}

func (h *history) add(p berth.MetricPoint) {
	if p.Final {
		h.Final = &p

		return
	}

	h.Last, h.LastStatus, h.LastAt = p.Value, p.Status, p.At

	if p.Status != berth.MetricFinite {
		return
	}

	if h.Finite == 0 {
		h.Min, h.Max = p.Value, p.Value
	}

	h.Min, h.Max = min(h.Min, p.Value), max(h.Max, p.Value)
	h.Sum += p.Value
	h.Finite++
}

// pending takes what is not stored yet.
func (s *series) pending() batch {
	s.mu.Lock()
	defer s.mu.Unlock()

	queue := slices.Concat(s.queue, s.thin.release(time.Now(), s.ended))
	s.queue = nil

	return s.taken(queue)
}

// restore puts a batch back in front, after it could not be stored.
func (s *series) restore(b batch) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.queue = slices.Concat(s.restored(b), s.queue)
}

// objective returns the value that counts for the trial: a final record's, or
// the last, best or mean one. status is empty when the metric was never
// reported, and other than finite when there is no number to rank.
func (s *series) objective(o berth.Objective) (value *float64, status berth.MetricStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()

	h := s.reported(o.Metric)
	if h == nil {
		return nil, ""
	}

	number, status := h.Last, h.LastStatus

	switch {
	case h.Final != nil:
		number, status = h.Final.Value, h.Final.Status
	case h.Finite == 0 || o.Strategy == berth.StrategyLast || o.Strategy == "":
	case o.Strategy == berth.StrategyMean:
		number, status = h.Sum/float64(h.Finite), berth.MetricFinite
	case o.Goal == berth.GoalMinimize:
		number, status = h.Min, berth.MetricFinite
	default:
		number, status = h.Max, berth.MetricFinite
	}

	if status != berth.MetricFinite {
		return nil, status
	}

	return &number, status
}

// reportedAt is when the only report that counts was made: a final record, or the
// last one, which others may have followed. It is zero when several count, or none
// was made.
func (s *series) reportedAt(o berth.Objective) (at time.Time, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	h := s.reported(o.Metric)

	switch {
	case h == nil:
		return time.Time{}, false
	case h.Final != nil:
		return h.Final.At, true
	case o.Strategy == berth.StrategyLast || o.Strategy == "":
		return h.LastAt, false
	default:
		return time.Time{}, false
	}
}
