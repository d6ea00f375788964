package search

import (
	"maps"
	"slices"

	"github.com/berthml/berth"
)

// nextGrid returns the points of the grid from the given place, in order and
// without those enqueued. The first parameter changes slowest.
func (s *Searcher) nextGrid(place int64, limit int) []berth.Assignment {
	var out []berth.Assignment

	if s.space.plain() {
		return s.plainGrid(place, limit)
	}

	s.space.walk(func(point int64, a berth.Assignment) bool {
		if _, enqueued := slices.BinarySearch(s.excluded, point); enqueued {
			return true
		}

		if place--; place < 0 {
			out = append(out, maps.Clone(a))
		}

		return len(out) < limit
	})

	return out
}

// plainGrid goes straight to the place, as every point counts.
func (s *Searcher) plainGrid(place int64, limit int) []berth.Assignment {
	var out []berth.Assignment

	next := 0 // of excluded

	for point := place; len(out) < limit; point++ {
		for next < len(s.excluded) && s.excluded[next] <= point {
			point++
			next++
		}

		if point >= s.space.points {
			break
		}

		a := berth.Assignment{}
		s.space.at(point, a)
		out = append(out, a)
	}

	return out
}
