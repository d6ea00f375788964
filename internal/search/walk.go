package search

import "github.com/berthml/berth"

// walk calls yield for the assignments of a finite space that may be tried,
// from a point on, each once and in order, until it returns false. The
// assignment is reused: a caller that keeps it clones it.
func (sp *space) walk(from int64, yield func(point int64, a berth.Assignment) bool) {
	a := berth.Assignment{}

	for point := from; point < sp.points; point++ {
		clear(a)

		if sp.at(point, a) && !yield(point, a) {
			return
		}
	}
}

// at fills a with the assignment of one point. It reports false when nothing
// may be tried there.
func (sp *space) at(point int64, a berth.Assignment) bool {
	own, err := sp.judge(point, a)

	return own && err == nil
}

// judge fills a with the assignment of one point. Points that differ only in
// parameters that are inactive are the same assignment; the one whose inactive
// digits are zero stands for all, and own is false for the others. The error is fill's.
func (sp *space) judge(point int64, a berth.Assignment) (own bool, err error) {
	used := int64(0)

	err = sp.fill(a, func(st step) berth.Value {
		d := &sp.searched[st.dim]
		digit := point / d.stride % d.points
		used += digit * d.stride

		return d.Point(sp.algorithm, digit)
	})

	return used == point, err
}
