package runtrial

import (
	"maps"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/metrictext"
)

// kept is all that is known of what was printed, for another run to go on from: files it
// reads again.
func (s *series) kept() keptSeries {
	s.mu.Lock()
	defer s.mu.Unlock()

	kept := keptSeries{
		Below: make(map[string]histories), Finals: maps.Clone(s.levels[ofPrinted].finals), More: s.more,
		Kept: s.levels[ofPrinted].kept, Lost: s.thin.lost, Held: make(map[string]berth.MetricPoint),
	}

	kept.Histories = s.keep(&kept, ofPrinted)

	for _, from := range belowPrinted {
		if l := &s.levels[from]; len(l.histories) > 0 {
			kept.Below[tierNames[from]] = s.keep(&kept, from)
			kept.Kept += l.kept
		}
	}

	return kept
}

// keep returns the histories of a tier, and adds what is held back of these metrics. The
// caller holds s.mu.
func (s *series) keep(kept *keptSeries, from tier) histories {
	some := make(histories, len(s.levels[from].histories))

	for name, h := range s.levels[from].histories {
		some[name] = *h

		if p, held := s.thin.held[name]; held {
			kept.Held[name] = p
		}
	}

	return some
}

// resume goes on from what another run knew of what was printed.
func (s *series) resume(k keptSeries, thin *thinner) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.more, s.thin = k.More, thin
	thin.kept, thin.lost = k.Kept, k.Lost
	s.levels[ofPrinted].kept = k.Kept

	for _, from := range belowPrinted {
		s.goOn(from, k.Below[tierNames[from]])
	}

	own := maps.Clone(k.Histories)
	if h, found := own[s.needed]; found && k.Likeness >= metrictext.DoubtfulFrom(s.auto) { // by a worker that kept both in one
		delete(own, s.needed)
		delete(s.levels[ofPrinted].given, s.needed) // its rows are what that tier has
		s.goOn(ofDoubtfulPrinted, histories{s.needed: h})
	}

	s.goOn(ofPrinted, own)
	maps.Copy(s.levels[ofPrinted].finals, k.Finals)
	maps.Copy(thin.held, k.Held) // after overrule, which drops what is held of a name: these are the script's own
}

// goOn goes on from the histories of a tier. The script reported them: what lower tiers
// say of these metrics counts no more. The caller holds s.mu.
func (s *series) goOn(from tier, some histories) {
	for name, h := range some {
		s.overrule(from, name)
		s.replace(from, name)
		s.levels[from].histories[name] = &h
		s.levels[from].given[name] = true
	}
}
