package runtrial

import (
	"context"
	"maps"
	"slices"

	"github.com/berthml/berth"
)

// tier is where a metric comes from. Of two that report it the higher one counts.
type tier int

// The tiers, the lowest first. In a sweep that names its source the shim stands
// behind that source; in one that names none all are read. Printed lines stand
// above event files, which their writers keep back for two minutes. The lowest report the
// objective by a name that is only like it, "Best val_acc" for val_acc, and in a
// sweep that names no source "Val Acc", too: nobody may report val_acc then.
// Keras' own bars stand below the shim, which knows fit from evaluate.
const (
	ofDoubtfulEvents tier = iota
	ofDoubtfulPrinted
	ofDoubtfulFile
	ofBars
	ofShim
	ofEvents
	ofPrinted
	ofFile
	tiers
)

// The name of each tier in what is kept for another run.
var tierNames = [tiers]string{
	"doubtful " + berth.MetricsTensorBoard, "doubtful " + berth.MetricsStdout, "doubtful " + berth.MetricsFile, "bars of Keras",
	berth.MetricsShim, berth.MetricsTensorBoard, berth.MetricsStdout, berth.MetricsFile,
}

// belowPrinted are the tiers that the log holds beside ofPrinted.
var belowPrinted = []tier{ofDoubtfulPrinted, ofBars}

// doubtfully is the tier of what a tier reports by a doubtful name.
func (t tier) doubtfully() tier {
	switch t {
	case ofFile:
		return ofDoubtfulFile
	case ofEvents:
		return ofDoubtfulEvents
	default:
		return ofDoubtfulPrinted
	}
}

// source is the tier's name in an outcome.
func (t tier) source() string {
	switch t {
	case ofDoubtfulPrinted, ofBars:
		return berth.MetricsStdout
	case ofDoubtfulFile:
		return berth.MetricsFile
	case ofDoubtfulEvents:
		return berth.MetricsTensorBoard
	default:
		return tierNames[t]
	}
}

// level is what a tier reports. The script's own word wins over the shim's, and what it
// writes over what it prints, so that no curve has two sources, and so that the end does
// not depend on which of them Berth read first:
//
//   - of a metric that a higher tier reports, nothing of a lower one counts;
//   - once a tier reports the objective, nothing of a lower one counts any more.
//
// Rows of a lower tier that are in the database by then are dropped before the higher
// one's go there. In a sweep without a source a final record says how its metric ended,
// and leaves the curve to the tier that reports one.
type level struct {
	whole bool // in a sweep without an objective any report of it silences the lower tiers
	late  bool // stored at the attempt's end, when all is known

	silent    bool // a higher tier reports what trials are ranked by
	histories map[string]*history
	finals    map[string]berth.MetricPoint // of metrics whose curve it does not report, or not yet
	waiting   []berth.MetricPoint          // until the end
	given     map[string]bool              // names of which the database may have rows of it
	kept      int                          // points that the thinner let go
}

// maxWaiting bounds what waits for the end: ten metrics for a thousand epochs.
// Of more, the newest stay.
const maxWaiting = 10_000

// owner is the tier whose curve of a metric counts; -1 = there is none. The caller holds s.mu.
func (s *series) owner(name string) tier {
	for from := tiers - 1; from >= 0; from-- {
		if s.levels[from].histories[name] != nil {
			return from
		}
	}

	return -1
}

// known is how many names there are from a tier on upwards. The caller holds s.mu.
func (s *series) known(from tier) (n int) {
	for i := from; i < tiers; i++ {
		n += len(s.levels[i].histories) + len(s.levels[i].finals)
	}

	return n
}

// replace takes back what an earlier run stored of higher tiers of a metric, of which this
// run knows nothing: where their word still stands they say it again. The caller holds s.mu.
func (s *series) replace(from tier, name string) {
	for i := from + 1; i < tiers; i++ {
		if l := &s.levels[i]; l.given[name] && l.histories[name] == nil {
			s.take(l, name)
		}
	}
}

// overrule takes back what lower tiers reported, when a tier first reports a metric. The
// caller holds s.mu, and has not taken that report in.
func (s *series) overrule(from tier, name string) {
	all := s.needed == name || s.needed == "" && s.levels[from].whole

	for i := range from {
		l := &s.levels[i]
		if l.silent {
			continue
		}

		delete(l.finals, name)
		names := []string{name}

		if all {
			l.silent, l.waiting = true, nil
			clear(l.finals)
			names = slices.Concat(names, slices.Collect(maps.Keys(l.histories)), slices.Collect(maps.Keys(l.given)))
		}

		for _, name := range names {
			s.take(l, name)
		}
	}
}

// take takes back what a level reported of a metric. The caller holds s.mu.
func (s *series) take(l *level, name string) {
	if l.histories[name] == nil && !l.given[name] {
		return
	}

	delete(l.histories, name)
	delete(s.thin.held, name)
	s.queue = slices.DeleteFunc(s.queue, func(p berth.MetricPoint) bool { return p.Name == name })
	l.waiting = slices.DeleteFunc(l.waiting, func(p berth.MetricPoint) bool { return p.Name == name })

	if l.given[name] {
		s.drop = append(s.drop, name)
		delete(l.given, name)
	}
}

// reported is what counts of a metric, and whose word its value is. Nil = nobody
// reported it. The caller holds s.mu.
func (s *series) reported(name string) (*history, tier) {
	from := s.owner(name)

	for i := tiers - 1; i > from; i-- {
		if p, found := s.levels[i].finals[name]; found {
			return &history{Final: &p}, i
		}
	}

	if from < 0 {
		return nil, from
	}

	h := s.levels[from].histories[name]
	if p, found := s.levels[from].finals[name]; found && h.Final == nil { // it came before the curve
		with := *h
		with.Final = &p

		return &with, from
	}

	return h, from
}

// source names the tier that reports a metric; empty when none does.
func (s *series) source(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	_, from := s.reported(name)
	if from < 0 {
		return ""
	}

	return from.source()
}

// releaseLate lets what waited for the end go, and final records of metrics without a
// curve. The caller holds s.mu.
func (s *series) releaseLate() {
	for from := tiers - 1; from >= 0; from-- {
		l := &s.levels[from]

		for _, p := range l.waiting {
			s.send(l, p)
		}

		l.waiting = nil

		for _, name := range slices.Sorted(maps.Keys(l.finals)) {
			if owner := s.owner(name); owner < 0 || owner == from {
				p := l.finals[name]
				delete(l.finals, name)

				if owner < 0 {
					l.histories[name] = &history{}
				}

				l.histories[name].add(p)
				s.send(l, p)
			}
		}
	}
}

// batch is what is to be stored at once: first names lose their points, then
// points are put.
type batch struct {
	drop   []string
	points []berth.MetricPoint
	stored storedNames // as of then
}

// stored are the names of which the database may have rows of each tier. The caller holds s.mu.
func (s *series) stored() storedNames {
	names := make(storedNames)

	for from := range tiers {
		for name := range s.levels[from].given {
			names[name] |= 1 << from
		}
	}

	return names
}

// resumeStored goes on from what an earlier run stored. Files are read again, and of the
// log what came since.
func (s *series) resumeStored(names storedNames) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for name, set := range names {
		for from := range tiers {
			if set&(1<<from) != 0 {
				s.levels[from].given[name] = true
			}
		}
	}
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
