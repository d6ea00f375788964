package runtrial

import (
	"path"
	"strings"

	"github.com/berthml/berth/internal/failure"
	"github.com/berthml/berth/internal/metrictext"
	"github.com/berthml/berth/internal/tfevents"
)

// Writers flush when they like, and files are written anew: in which order values are read
// says little. So each file has a history of the objective, and what counts is all of them,
// by the age of their writers.

// newestWriter is the youngest file that reported a metric, and its first and last step.
type newestWriter struct {
	file        *eventFile
	first, last int64
}

// covered reports whether a younger file has the step, or steps around it, of a metric: a
// curve keeps that file's. It notes what this one has.
func (e *eventFiles) covered(f *eventFile, name string, step int64) bool {
	newest, known := e.newest[name]

	switch {
	case !known && len(e.newest) >= metrictext.MaxNames:
	case !known || newest.file != f && older(newest.file, f) < 0:
		e.newest[name] = newestWriter{f, step, step}
	case newest.file == f:
		e.newest[name] = newestWriter{f, min(newest.first, step), max(newest.last, step)}
	default:
		return step >= newest.first && step <= newest.last
	}

	return false
}

// turn takes back what was taken for the objective under another name, once a tag is there
// that is more like it.
func (e *eventFiles) turn(like tagLikeness) {
	if e.likeness > 0 || like == ownTag { // or by an earlier run
		e.metrics.retract(e.tier(), e.objective)

		for _, f := range e.files {
			f.told = history{}
		}
	}

	e.likeness = like
}

// likenessOf says how much a metric of a file is like the objective; 0 = it is another.
func (e *eventFiles) likenessOf(f *eventFile, name, tag string) tagLikeness {
	switch {
	case e.objective == "":
		return 0
	case name == e.objective:
		return ownTag
	case name == e.alias || tag == e.objective && f.alone:
		return keysTag
	case failure.PlainName(name) == failure.PlainName(e.objective):
		return likeTag
	default:
		return 0
	}
}

// tier is where what is taken for the objective goes.
func (e *eventFiles) tier() tier {
	if e.likeness == likeTag && e.metrics.auto {
		return ofEvents.doubtfully()
	}

	return ofEvents
}

// recount says what all files have of the objective.
func (e *eventFiles) recount() {
	var all history

	for _, f := range e.files { // the oldest first
		all.merge(f.told)
	}

	if all.LastStatus != "" {
		e.metrics.recount(e.tier(), e.objective, all)
	}
}

// settleKeys finds the directories that begin like the objective's tag and have no sibling
// that does: add_scalars makes one for each of its keys, and loss_curves beside nothing is
// a name. Where a sibling comes later, all files are read again.
func (e *eventFiles) settleKeys() {
	if e.objective == "" {
		return
	}

	type parent struct{ root, dir string }

	prefix, keys := strings.ReplaceAll(e.objective, "/", "_")+"_", make(map[parent]map[string]bool)

	of := func(f *eventFile) (parent, string, bool) {
		dir, base := path.Split(f.dir())

		return parent{f.root, dir}, base, len(base) > len(prefix) && strings.HasPrefix(base, prefix)
	}

	for _, f := range e.files {
		if at, base, is := of(f); is {
			if keys[at] == nil {
				keys[at] = make(map[string]bool)
			}

			keys[at][base] = true
		}
	}

	again := false

	for _, f := range e.files {
		at, _, is := of(f)
		was := f.alone
		f.alone = is && len(keys[at]) == 1
		again = again || was && !f.alone && f.told.LastStatus != ""
	}

	if again && e.likeness == keysTag {
		e.metrics.retract(ofEvents, e.objective)
		e.likeness = 0

		for _, f := range e.files {
			f.restart()
		}
	}
}

// restart reads the file from its beginning.
func (f *eventFile) restart() {
	*f = eventFile{root: f.root, path: f.path, alone: f.alone, decoder: tfevents.NewDecoder()}
}

// merge adds what a later history has.
func (h *history) merge(later history) {
	if later.LastStatus == "" { // nothing was reported
		return
	}

	h.Before = nil
	h.Last, h.LastStatus, h.LastAt = later.Last, later.LastStatus, later.LastAt

	if later.Finite == 0 {
		return
	}

	if h.Finite == 0 {
		h.Min, h.Max = later.Min, later.Max
	}

	h.Min, h.Max = min(h.Min, later.Min), max(h.Max, later.Max)
	h.Sum += later.Sum
	h.Finite += later.Finite
}

// recount replaces what is known of a metric that a tier reports; its points stay.
func (s *series) recount(from tier, name string, h history) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if old := s.levels[from].histories[name]; old != nil {
		h.Final = old.Final
		*old = h
	}
}

// retract takes back a metric of a tier, also what only an earlier run has stored of it.
func (s *series) retract(from tier, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.owner(name) <= from {
		s.take(&s.levels[from], name)
	}
}
