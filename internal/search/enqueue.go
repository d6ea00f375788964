package search

import (
	"slices"

	"github.com/berthml/berth"
)

// prepareEnqueue completes the assignments that are tried first with defaults,
// fixed and derived values. It leaves out repeated ones and those that may not
// be tried.
func (s *Searcher) prepareEnqueue() error {
	index := s.index()

	for i, given := range s.spec.Enqueue {
		a, v, missing := s.complete(given)
		if missing != "" {
			return berth.Errorf(berth.KindInvalid, "enqueued assignment %d has no value for %q", i, missing)
		}

		if key := a.Key(); v.ok() && !s.enqueued[key] {
			s.enqueued[key] = true
			s.enqueue = append(s.enqueue, a)

			if point, on := s.point(a, index); on {
				s.excluded = append(s.excluded, point)
			}
		}
	}

	slices.Sort(s.excluded)

	return nil
}

// index maps the values of every searched parameter to their numbers; nil when
// nothing needs them.
func (s *Searcher) index() []map[berth.Value]int64 {
	if len(s.spec.Enqueue) == 0 || !s.space.finite || s.space.points > maxWalk {
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

// point is the number of an assignment; on is false when it lies between the
// points of the space.
func (s *Searcher) point(a berth.Assignment, index []map[berth.Value]int64) (point int64, on bool) {
	if index == nil {
		return 0, false
	}

	for i, d := range s.space.searched {
		v, active := a[d.Name]
		if !active {
			continue
		}

		j, known := index[i][v]
		if !known {
			return 0, false
		}

		point += j * d.stride
	}

	return point, true
}
