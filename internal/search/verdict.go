package search

import "github.com/berthml/berth"

// cause is why an assignment may not be tried.
type cause int

const (
	allowed      cause = iota
	uncomputable       // a derived value has no finite result
	forbidden          // a condition of forbid holds, or cannot be computed
	unrendered         // the command cannot be made of it
)

// verdict says whether an assignment may be tried. The zero verdict allows it.
type verdict struct {
	cause cause
	name  string // of the derived parameter, or the text of the condition
	err   error  // nil = the condition holds
}

func (v verdict) ok() bool { return v.cause == allowed }

// error is the verdict in words, nil when the assignment may be tried.
func (v verdict) error() error {
	switch {
	case v.cause == allowed:
		return nil
	case v.cause == uncomputable:
		return berth.Errorf(berth.KindInvalid, "the value of %q cannot be computed: %w", v.name, v.err)
	case v.cause == unrendered:
		return v.err
	case v.err != nil:
		return berth.Errorf(berth.KindInvalid, "the forbid condition %q cannot be computed: %w", v.name, v.err)
	default:
		return berth.Errorf(berth.KindInvalid, "the forbid condition %q excludes it", v.name)
	}
}

// Complete adds defaults, fixed and derived values to an assignment that the
// user wrote. The error says why the search would leave it out: an
// *argv.Error where the command cannot be rendered, else KindInvalid.
func (s *Searcher) Complete(given berth.Assignment) (berth.Assignment, error) {
	a, v, missing := s.complete(given)
	if missing != "" {
		return nil, berth.Errorf(berth.KindInvalid, "there is no value for %q", missing)
	}

	return a, v.error()
}

func (s *Searcher) complete(given berth.Assignment) (a berth.Assignment, v verdict, missing string) {
	a = berth.Assignment{}

	v = s.space.fill(a, func(st step) berth.Value {
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

	return a, v, missing
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
			if v, own := sp.judge(point, a); own && !yield(a, v.error()) {
				return false
			}
		}

		return true
	}

	corners := 1 << min(len(sp.searched), 8) // 256 at most

	for i := range n {
		a := berth.Assignment{}

		var v verdict
		if i < corners {
			v = sp.corner(i, a)
		} else {
			_, v = sp.draw(source(s.spec.Search.Seed, 0, i), a)
		}

		if !yield(a, v.error()) {
			return false
		}
	}

	return false
}

// corner fills a with the least or, where the bit of i is set, the greatest
// value of each parameter.
func (sp *space) corner(i int, a berth.Assignment) verdict {
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
