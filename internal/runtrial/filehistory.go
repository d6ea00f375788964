package runtrial

import (
	"maps"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/metrictext"
)

// stepsAtMost are told apart in a metrics file that is written again; what has a further
// one counts each time it is read.
const stepsAtMost = 20_000

// fileHistory is what a metrics file has of the objective. A job may write the file again
// from its start: a step that it names then takes the place of the earlier one, and so does
// a value that is the same. A file of one record without a step has another value each time.
type fileHistory struct {
	writing int // how often the file was begun anew
	steps   map[int64]*stepHistory
	rest    history
	last    history // only the newest report of it counts
}

// stepHistory is what one writing of the file has of a step.
type stepHistory struct {
	history

	writing int
}

func newFileHistory() *fileHistory { return &fileHistory{steps: make(map[int64]*stepHistory)} }

// take takes in what a line has of the objective. What had its name before is forgotten
// where the line has something that is more like it.
func (f *fileHistory) take(parser *metrictext.LineParser, points []berth.MetricPoint) {
	if parser.Turned {
		*f = fileHistory{writing: f.writing, steps: make(map[int64]*stepHistory)}
	}

	for _, p := range slices.Concat(points, parser.Doubts) {
		if p.Name == parser.Objective {
			f.add(p, parser.Named)
		}
	}
}

// add takes in a report. named says that the job named its step.
func (f *fileHistory) add(p berth.MetricPoint, named bool) {
	if p.Final {
		return // it does not count with the curve
	}

	f.last.add(p)

	at := f.steps[p.Step]

	switch {
	case at == nil && len(f.steps) >= stepsAtMost:
		f.rest.add(p)

		return
	case at == nil:
		at = &stepHistory{writing: f.writing}
		f.steps[p.Step] = at
	case at.writing != f.writing:
		if same := at.Last == p.Value && at.LastStatus == p.Status; !named && !same {
			f.rest.merge(at.history)
		}

		*at = stepHistory{writing: f.writing}
	}

	at.add(p)
}

// all is what counts of the file.
func (f *fileHistory) all() history {
	all := f.rest

	for _, step := range slices.Sorted(maps.Keys(f.steps)) {
		all.merge(f.steps[step].history)
	}

	all.Last, all.LastStatus, all.LastAt = f.last.Last, f.last.LastStatus, f.last.LastAt

	return all
}
