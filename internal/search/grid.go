package search

import (
	"maps"
	"slices"

	"github.com/berthml/berth"
)

// nextGrid returns the points of the grid behind that of the last trial, in order and
// without those enqueued. The first parameter changes slowest.
func (s *Searcher) nextGrid(tried berth.Tried, limit int) (out []Suggestion, err error) {
	from := int64(0)

	if tried.Made > s.listed {
		last, on := s.point(tried.Last, s.findDigit)
		if !on {
			return nil, berth.Errorf(berth.KindInternal, "trial %d is no point of its grid: %s", tried.Made, tried.Last.Key())
		}

		from = last + 1
	}

	s.space.walk(from, func(point int64, a berth.Assignment) bool {
		if _, enqueued := slices.BinarySearch(s.excluded, point); !enqueued {
			out = append(out, Suggestion{maps.Clone(a), berth.Origin{By: berth.SearchGrid}})
		}

		return len(out) < limit
	})

	return out, nil
}

// findDigit returns the number of a value of a searched parameter: the greatest where
// several points have it, so that a grid goes on behind all of them.
func (s *Searcher) findDigit(dim int, v berth.Value) (digit int64, known bool) {
	d := &s.space.searched[dim]

	for digit = d.points - 1; digit >= 0; digit-- {
		if d.Point(s.space.algorithm, digit) == v {
			return digit, true
		}
	}

	return 0, false
}
