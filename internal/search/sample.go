package search

import "github.com/berthml/berth"

// Complete adds defaults, fixed and derived values to an assignment that the
// user wrote. The error says why the search would leave it out: an
// *argv.Error where the command cannot be rendered, else KindInvalid.
func (s *Searcher) Complete(given berth.Assignment) (berth.Assignment, error) {
	a, missing, err := s.complete(given)
	if missing != "" {
		return nil, berth.Errorf(berth.KindInvalid, "there is no value for %q", missing)
	}

	return a, err
}

func (s *Searcher) complete(given berth.Assignment) (a berth.Assignment, missing string, err error) {
	a = berth.Assignment{}

	err = s.space.fill(a, func(st step) berth.Value {
		value, has := given[st.Name]

		switch {
		case has:
			return value
		case st.Default != nil:
			return *st.Default
		default:
			missing = st.Name

			return berth.Value{}
		}
	})

	return a, missing, err
}

// Sample yields up to n assignments of the space, allowed or not, with the
// error that Complete would give; the assignment of an error may lack values.
// It yields a finite space of at most n points in full, and all is then true.
// Of a larger one it yields every corner in turn, where each parameter has its
// least or its greatest value, and random draws.
func (s *Searcher) Sample(n int, yield func(berth.Assignment, error) bool) (all bool) {
	sp := s.space
	if sp.finite && sp.points <= int64(n) {
		for point := range sp.points {
			a := berth.Assignment{}
			if own, err := sp.judge(point, a); own && !yield(a, err) {
				return false
			}
		}

		return true
	}

	corners := 1 << min(len(sp.searched), 8) // 256 at most

	for i := range n {
		a := berth.Assignment{}

		var err error
		if i < corners {
			err = sp.corner(i, a)
		} else {
			_, err = sp.draw(s.parts(0, i), a)
		}

		if !yield(a, err) {
			return false
		}
	}

	return false
}

// corner fills a with the least or, where the bit of i is set, the greatest
// value of each parameter.
func (sp *space) corner(i int, a berth.Assignment) error {
	return sp.fill(a, func(st step) berth.Value {
		d := &sp.searched[st.dim]
		high := i>>st.dim&1 == 1

		switch {
		case d.finite && high:
			return d.Point(sp.algorithm, d.points-1)
		case d.finite:
			return d.Point(sp.algorithm, 0)
		case high:
			return berth.FloatValue(*d.Max)
		default:
			return berth.FloatValue(*d.Min)
		}
	})
}
