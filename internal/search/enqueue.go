package search

import (
	"slices"

	"github.com/berthml/berth"
)

// prepareEnqueue completes the enqueued assignments with defaults, fixed and
// derived values. It leaves out repeated and forbidden ones.
func (s *Searcher) prepareEnqueue() error {
	var (
		entries []berth.Assignment
		tried   = map[string]bool{}
	)

	for i, given := range s.spec.Enqueue {
		a, missing, excluded := s.complete(given)
		if missing != "" {
			return berth.Errorf(berth.KindInvalid, "enqueued assignment %d has no value for %q", i, missing)
		}

		if key := a.Key(); excluded == nil && !tried[key] {
			tried[key] = true
			entries = append(entries, a)
		}
	}

	*s = *s.With(len(entries), 0, entries)

	return nil
}

// Enqueued returns the assignments that are tried first, in order: complete, without
// repeated and forbidden ones.
func (s *Searcher) Enqueued() []berth.Assignment { return s.enqueue }

// With returns the same search of a spec whose enqueued assignments are stored
// separately, as Enqueued returned them; entries begin at index from. Zero listed
// assignments leave the spec's own.
func (s *Searcher) With(listed, from int, entries []berth.Assignment) *Searcher {
	if listed == 0 {
		return s
	}

	out := *s
	out.listed, out.from, out.enqueue, out.excluded = listed, from, entries, nil
	out.enqueued = make(map[string]bool, len(entries))

	index := out.index()
	digit := func(dim int, v berth.Value) (int64, bool) {
		j, known := index[dim][v]

		return j, known
	}

	for _, a := range entries {
		out.enqueued[a.Key()] = true

		if index == nil {
			continue
		}

		if point, on := out.point(a, digit); on {
			out.excluded = append(out.excluded, point)
		}
	}

	slices.Sort(out.excluded)

	return &out
}

// index maps the values of every searched parameter to their numbers; nil when
// nothing needs them.
func (s *Searcher) index() []map[berth.Value]int64 {
	if len(s.enqueue) == 0 || s.spec.Search.Algorithm == berth.SearchList || !s.space.finite || s.space.points > maxWalk {
		return nil
	}

	index := make([]map[berth.Value]int64, len(s.space.searched))

	for i, d := range s.space.searched {
		index[i] = make(map[berth.Value]int64, d.points)
		for j := range d.points {
			index[i][d.Point(s.space.algorithm, j)] = j
		}
	}

	return index
}

// point is the number of an assignment, of whose values digit knows the numbers;
// on is false when it lies between the points of the space.
func (s *Searcher) point(a berth.Assignment, digit func(dim int, v berth.Value) (int64, bool)) (point int64, on bool) {
	for i, d := range s.space.searched {
		v, active := a[d.Name]
		if !active {
			continue
		}

		j, known := digit(i, v)
		if !known {
			return 0, false
		}

		point += j * d.stride
	}

	return point, true
}
