package search

import (
	"slices"

	"github.com/berthml/berth"
)

// corner says where the first trials of a search that learns begin: at the ends of the numbers
// that are marked to decide memory. Measured corners predict what all shapes between them need
// (memory.Family), and the largest one comes first: nothing between needs more.
type corner struct {
	low, high float64 // parts of the draw that are the least and the greatest value
	turned    bool    // it is low where others are high
}

// Corners are the numbers of the trial at the smallest corner, the one after the largest, and
// of the last trial at a corner; 0 = none is at one. All other shapes lie between the first
// two: trials after them are better started when these have asked for their places.
func (s *Searcher) Corners() (smallest, last int) {
	if s.cornered == 0 {
		return 0, 0
	}

	return s.listed + 2, s.listed + s.cornered //nolint:mnd // the largest and the smallest
}

// cornersFor are the corners by searched parameter, and how many trials begin there: four, two
// of one number, none where there are hardly more shapes.
func cornersFor(sp *space) (corners map[int]corner, trials int) {
	corners = make(map[int]corner)
	shapes := int64(1)

	for i := range sp.searched {
		d := &sp.searched[i]

		low, high, numbers := d.ends()
		if changes, _ := d.Marked(); !changes || !numbers || low == high {
			continue
		}

		corners[i] = corner{low: low, high: high, turned: len(corners)%2 == 1}
		if shapes *= d.points; !d.finite {
			shapes = sp.points
		}
	}

	trials = min(1<<len(corners), 4)
	if len(corners) == 0 || shapes <= int64(trials) {
		return nil, 0
	}

	return corners, trials
}

// part is that of a draw for the n-th trial, from 0: all high, all low, then every other one.
func (c corner) part(n int) float64 {
	high := n == 0 || n == 2 && !c.turned || n == 3 && c.turned
	if high {
		return c.high
	}

	return c.low
}

// ends are the parts of a draw that are the least and the greatest value; numbers is false of
// choices that are not all numbers.
func (d *dim) ends() (low, high float64, numbers bool) {
	const last = 1 - 1e-12

	if d.Type != berth.ParameterCategorical {
		return 0, last, true
	}

	if len(d.Probabilities) > 0 {
		return 0, 0, false
	}

	values := make([]float64, len(d.Values))
	for i, v := range d.Values {
		n, isNumber := v.Number()
		if !isNumber {
			return 0, 0, false
		}

		values[i] = n
	}

	middle := func(v float64) float64 { return (float64(slices.Index(values, v)) + 0.5) / float64(len(values)) }

	return middle(slices.Min(values)), middle(slices.Max(values)), true
}
