package runtrial

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/masking"
	"github.com/berthml/berth/internal/metrictext"
)

// series is all an attempt reported, as far as its objective needs it.
type series struct {
	mu     sync.Mutex
	levels [tiers]level
	queue  []berth.MetricPoint // not in the database yet
	thin   *thinner
	more   bool          // there were more names than maxNames
	needed string        // the metric by which trials are ranked; empty = there is none
	auto   bool          // the spec names no source
	ended  bool          // nothing is held back any more
	drop   []string      // names of which the database must lose the points that it has
	mask   *masking.Mask // of what no name may hold
}

// history is what is kept of one metric. Its figures are finite: a sum that is
// too large for a number is not written down.
type history struct {
	figures

	Last       float64            `json:"last"`
	LastStatus berth.MetricStatus `json:"last_status"`
	LastAt     time.Time          `json:"last_at,omitzero"`
	Final      *berth.MetricPoint `json:"final,omitempty"`
	Step       int64              `json:"step,omitempty"`   // of the newest value
	Before     *figures           `json:"before,omitempty"` // of all without that step; nil = not known
}

// figures are those of a metric's finite values.
type figures struct {
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Sum    float64 `json:"sum"`
	Finite int     `json:"finite"` // how many there were
}

// newSeries is empty. needed is the metric by which trials are ranked, if any.
func newSeries(thin *thinner, needed string) *series {
	s := &series{thin: thin, needed: needed}
	for i := range s.levels {
		s.levels[i] = level{histories: make(map[string]*history), finals: make(map[string]berth.MetricPoint), given: make(map[string]bool), whole: true}
	}

	return s
}

// add takes in what a tier reports, as far as it counts.
func (s *series) add(from tier, points ...berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	l := &s.levels[from]

	for _, p := range points {
		p.Name = s.mask.Name(p.Name)

		if l.silent || s.owner(p.Name) > from {
			continue
		}

		h := l.histories[p.Name]
		if h == nil {
			if s.known(from) >= metrictext.MaxNames && p.Name != s.needed {
				s.more = true

				continue
			}

			if p.Final && s.auto {
				l.finals[p.Name] = p

				continue
			}

			s.overrule(from, p.Name)
			s.replace(from, p.Name)

			h = &history{}
			l.histories[p.Name] = h
		}

		h.add(p)

		if p.Final {
			delete(l.finals, p.Name)
		}

		if l.late {
			l.waiting = append(l.waiting, p)
			l.waiting = l.waiting[max(len(l.waiting)-maxWaiting, 0):]

			continue
		}

		l.given[p.Name] = true // by an earlier run that read the same, maybe
		s.send(l, p)
	}
}

// send queues a point, unless too many come. The caller holds s.mu.
func (s *series) send(l *level, p berth.MetricPoint) {
	if s.thin.add(p) {
		s.queue = append(s.queue, p)
		l.kept++
	}
}

// addFrom adds what a tier's parser found. Where it found what is more like the objective
// than what it took for it before, that is forgotten first.
func (s *series) addFrom(from tier, parser *metrictext.LineParser, points []berth.MetricPoint) {
	if parser.Turned {
		parser.Turned = false
		s.forget(from, parser.Objective)
		s.forget(from.doubtfully(), parser.Objective)
		s.forget(ofBars, parser.Objective)
	}

	s.add(from, points...)
	s.add(ofBars, parser.Bars...)
	s.add(from.doubtfully(), parser.Doubts...)
	parser.Bars, parser.Doubts = nil, nil
}

// forget drops what a tier reported of a metric.
func (s *series) forget(from tier, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	l := &s.levels[from]
	delete(l.finals, name)

	if l.histories[name] != nil {
		s.take(l, name)
	}
}

// any reports whether anything was reported.
func (s *series) any() bool { return len(s.names()) > 0 }

// names are those of metrics that count, ascending.
func (s *series) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	names := make(map[string]bool)

	for i := range s.levels {
		for name := range s.levels[i].histories {
			names[name] = true
		}

		for name := range s.levels[i].finals {
			names[name] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// end lets everything go that was held back.
func (s *series) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.releaseLate()
	s.ended = true
}

// notes say what was left out.
func (s *series) notes(b Bounds) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var notes []string

	if s.more {
		notes = append(notes, fmt.Sprintf("it reported more than %d metrics by name; the others were left out", metrictext.MaxNames))
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

	if h.Before != nil && p.Step == h.Step { // it replaces the earlier one
		h.figures = *h.Before
	} else {
		h.Before = new(h.figures)
	}

	h.Last, h.LastStatus, h.LastAt, h.Step = p.Value, p.Status, p.At, p.Step

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

	released := s.thin.release(time.Now(), s.ended)
	for _, p := range released {
		if from := s.owner(p.Name); from >= 0 {
			s.levels[from].kept++
		}
	}

	b := batch{drop: s.drop, points: slices.Concat(s.queue, released), stored: s.stored()}
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

// objective returns the value that counts for the trial: a final record's, or
// the last, best or mean one. status is empty when the metric was never
// reported, and other than finite when there is no number to rank.
func (s *series) objective(o berth.Objective) (value *float64, status berth.MetricStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()

	h, _ := s.reported(o.Metric)
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

	h, _ := s.reported(o.Metric)

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
