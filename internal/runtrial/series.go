package runtrial

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// maxNames bounds how many metrics an attempt may have (reliability.md,
// failure 30); further names are dropped.
const maxNames = 1000

// series is all an attempt reported, as far as its objective needs it.
type series struct {
	mu     sync.Mutex
	byName map[string]*history
	queue  []berth.MetricPoint // not in the database yet
	thin   *thinner
	more   bool // there were more names than maxNames
	ended  bool // nothing is held back any more
}

// history is what is kept of one metric.
type history struct {
	last, min, max float64
	sum            float64
	finite         int
	lastStatus     berth.MetricStatus
	final          *berth.MetricPoint
}

func newSeries(thin *thinner) *series { return &series{byName: make(map[string]*history), thin: thin} }

func (s *series) add(points ...berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, p := range points {
		h := s.byName[p.Name]
		if h == nil {
			if len(s.byName) >= maxNames {
				s.more = true

				continue
			}

			h = &history{min: math.Inf(1), max: math.Inf(-1)}
			s.byName[p.Name] = h
		}

		h.add(p)

		if s.thin.add(p) {
			s.queue = append(s.queue, p)
		}
	}
}

// end lets everything go that was held back.
func (s *series) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

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
		h.final = &p

		return
	}

	h.last, h.lastStatus = p.Value, p.Status

	if p.Status == berth.MetricFinite {
		h.min, h.max = min(h.min, p.Value), max(h.max, p.Value)
		h.sum += p.Value
		h.finite++
	}
}

// pending takes the points that are not stored yet.
func (s *series) pending() []berth.MetricPoint {
	s.mu.Lock()
	defer s.mu.Unlock()

	queue := slices.Concat(s.queue, s.thin.release(time.Now(), s.ended))
	s.queue = nil

	return queue
}

// restore puts points back in front, after they could not be stored.
func (s *series) restore(points []berth.MetricPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.queue = slices.Concat(points, s.queue)
}

// objective returns the value that counts for the trial: a final record's, or
// the last, best or mean one. status is empty when the metric was never
// reported, and other than finite when there is no number to rank.
func (s *series) objective(o berth.Objective) (value *float64, status berth.MetricStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()

	h := s.byName[o.Metric]
	if h == nil {
		return nil, ""
	}

	number, status := h.last, h.lastStatus

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
