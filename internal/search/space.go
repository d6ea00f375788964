package search

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
	"github.com/berthml/berth/internal/sweepfile/expr"
)

// space is a search space, prepared: its parameters in an order in which a
// parent comes before its children and an operand before its result.
type space struct {
	spec      berth.Spec
	algorithm string
	steps     []step // every parameter
	searched  []dim  // the searched ones, in the order of the document
	forbid    []forbid
	points    int64 // product of the dims, at most math.MaxInt64
	finite    bool
	renders   bool // every assignment renders; else each is checked
}

// forbid is one condition, and the error of an assignment that it excludes: one for
// all, as a search may draw many of them.
type forbid struct {
	*expr.Program

	source   string
	excludes error
}

// step gives one parameter its value.
type step struct {
	berth.Parameter

	dim     int           // index into searched; -1 when fixed or derived
	program *expr.Program // derived
}

// dim is a searched parameter. Points are numbered as the digits of a number:
// the first parameter of the document is the most significant one.
type dim struct {
	berth.Parameter

	points int64
	stride int64
	finite bool
}

func newSpace(s berth.Spec) (*space, error) {
	sp := &space{spec: s, algorithm: s.Search.Algorithm, points: 1, finite: true, renders: len(s.Command) == 0 || argv.Sure(s)}
	scope := expr.Scope{}

	for _, p := range s.Parameters {
		scope[p.Name] = expr.TypeOf(p)
	}

	if err := sp.order(s.Parameters, scope); err != nil {
		return nil, err
	}

	for i := len(sp.searched) - 1; i >= 0; i-- {
		d := &sp.searched[i]
		d.points, d.finite = d.Points(sp.algorithm)
		d.stride = sp.points

		switch {
		case !d.finite:
			sp.finite = false
		case d.points <= 0:
			return nil, berth.Errorf(berth.KindInvalid, "parameter %q has no values", d.Name)
		case d.points > math.MaxInt64/sp.points:
			sp.points = math.MaxInt64
		default:
			sp.points *= d.points
		}
	}

	for _, source := range s.Forbid {
		program, err := expr.Compile(source, expr.Bool, scope)
		if err != nil {
			return nil, berth.Errorf(berth.KindInvalid, "compiling forbid %q: %w", source, err)
		}

		sp.forbid = append(sp.forbid, forbid{program, source, berth.Errorf(berth.KindInvalid, "the forbid condition %q excludes it", source)})
	}

	return sp, nil
}

// order fills steps and searched.
func (sp *space) order(parameters []berth.Parameter, scope expr.Scope) error {
	waiting := make([]step, 0, len(parameters))

	for _, p := range parameters {
		st := step{Parameter: p, dim: -1}

		switch {
		case p.Searched():
			st.dim = len(sp.searched)
			sp.searched = append(sp.searched, dim{Parameter: p})
		case p.Type == berth.ParameterDerived:
			program, err := expr.Compile(p.Expr, expr.Number, scope)
			if err != nil {
				return berth.Errorf(berth.KindInvalid, "compiling parameter %q: %w", p.Name, err)
			}

			st.program = program
		case p.Value == nil:
			return berth.Errorf(berth.KindInvalid, "parameter %q has no value", p.Name)
		}

		waiting = append(waiting, st)
	}

	known := map[string]bool{}

	for len(waiting) > 0 {
		var later []step

		for _, st := range waiting {
			if !st.ready(known) {
				later = append(later, st)

				continue
			}

			known[st.Name] = true
			sp.steps = append(sp.steps, st)
		}

		if len(later) == len(waiting) {
			return berth.Errorf(berth.KindInvalid, "parameter %q waits for itself or for one that is missing", later[0].Name)
		}

		waiting = later
	}

	return nil
}

// ready says whether everything the parameter depends on is known.
func (st step) ready(known map[string]bool) bool {
	needs := slices.Collect(maps.Keys(st.When))
	if st.program != nil {
		needs = append(needs, st.program.Names()...)
	}

	return !slices.ContainsFunc(needs, func(name string) bool { return !known[name] })
}

// plain reports whether every point is a different assignment.
func (sp *space) plain() bool {
	conditional := slices.ContainsFunc(sp.steps, func(st step) bool { return len(st.When) > 0 || st.program != nil })

	return !conditional && len(sp.forbid) == 0 && sp.renders
}

// fill gives a, which is empty, the value of every active parameter; pick
// chooses that of a searched one. The error says why the result may not be tried:
// a condition forbids it, a derived value cannot be computed, or the command cannot
// be rendered. A derived value of an inactive parameter is absent like its
// operand, and a condition that names one does not apply. A condition that
// cannot be computed, such as a division by zero, forbids.
func (sp *space) fill(a berth.Assignment, pick func(st step) berth.Value) error {
	for _, st := range sp.steps {
		if !st.Active(a) {
			continue
		}

		switch {
		case st.dim >= 0:
			a[st.Name] = pick(st)
		case st.program == nil:
			a[st.Name] = *st.Value
		case st.program.Ready(a):
			v, err := st.program.Number(a)
			if err != nil {
				return berth.Errorf(berth.KindInvalid, "the value of %q cannot be computed: %w", st.Name, err)
			}

			a[st.Name] = v
		}
	}

	for _, f := range sp.forbid {
		if !f.Ready(a) {
			continue
		}

		switch bad, err := f.Bool(a); {
		case err != nil:
			return berth.Errorf(berth.KindInvalid, "the forbid condition %q cannot be computed: %w", f.source, err)
		case bad:
			return f.excludes
		}
	}

	if sp.renders {
		return nil
	}

	for _, stage := range append(sp.spec.StagesBefore(berth.StageMain), berth.StageMain) {
		_, err := argv.Render(sp.spec.ForStage(stage), sp.spec.ValuesFor(stage, a))
		if problem, ok := errors.AsType[*argv.Error](err); ok && stage != berth.StageMain {
			problem.Stage = stage
		}

		if err != nil {
			return err
		}
	}

	return nil
}
