package search

import (
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/expr"
)

// MemoryParameters names the parameters whose values decide memory, in the
// order of the document. A parameter marked memory: true counts, and one marked
// memory: false does not. Of the others
//
//   - a searched one counts when nothing is marked true and it is an int or a
//     categorical;
//   - a fixed one counts, so that editing it makes another shape;
//   - a derived one counts unless it is computed from a searched or derived one
//     that does not: then it would only repeat a value that does not matter.
func MemoryParameters(s berth.Spec) []string {
	marked := slices.ContainsFunc(s.Parameters, func(p berth.Parameter) bool {
		changes, _ := p.Marked()

		return changes
	})
	scope := expr.Scope{}

	for _, p := range s.Parameters {
		scope[p.Name] = expr.TypeOf(p)
	}

	blocked := map[string]bool{} // searched and derived parameters that do not count

	for size := -1; size != len(blocked); { // until a round adds nothing
		size = len(blocked)

		for _, p := range s.Parameters {
			if p.Type != berth.ParameterFixed && !counts(p, marked, blocked, scope) {
				blocked[p.Name] = true
			}
		}
	}

	var names []string

	for _, p := range s.Parameters {
		if counts(p, marked, blocked, scope) {
			names = append(names, p.Name)
		}
	}

	return names
}

// counts says whether a parameter decides memory, as far as it is known which
// others do not.
func counts(p berth.Parameter, marked bool, blocked map[string]bool, scope expr.Scope) bool {
	switch changes, keeps := p.Marked(); {
	case changes || keeps:
		return changes
	case p.Type == berth.ParameterFixed:
		return true
	case p.Type == berth.ParameterDerived:
		program, err := expr.Compile(p.Expr, expr.Number, scope)

		return err == nil && !slices.ContainsFunc(program.Names(), func(name string) bool { return blocked[name] })
	default:
		return !marked && (p.Type == berth.ParameterInt || p.Type == berth.ParameterCategorical)
	}
}

// Shapes makes the shapes of a stage of a sweep's trials. Trials of one shape share a probe.
type Shapes struct {
	spec   berth.Spec
	stage  string
	digest string
	names  []string
}

// NewShapes prepares the shapes of a valid spec that runs the given image, for one stage.
func NewShapes(s berth.Spec, imageDigest, stage string) Shapes {
	return Shapes{spec: s.ForStage(stage), stage: stage, digest: s.DigestFor(stage, imageDigest), names: MemoryParameters(s)}
}

// Of is the shape of one trial. Inactive parameters are absent, so that trials
// with and without one differ.
func (h Shapes) Of(a berth.Assignment) berth.Shape {
	a = h.spec.ValuesFor(h.stage, a)
	values := berth.Assignment{}

	for _, name := range h.names {
		if v, ok := a[name]; ok {
			values[name] = v
		}
	}

	return berth.Shape{
		ImageDigest: h.digest,
		Command:     h.spec.Command,
		Entrypoint:  h.spec.Entrypoint,
		Workdir:     h.spec.Workdir,
		Values:      values,
		Stage:       h.stage,
		Environment: h.spec.EnvironmentVariables,
		CPUMilli:    h.spec.Resources.ThreadCapMilli(),
		Datasets:    h.spec.DatasetNames(),
		Inputs:      h.spec.StagesBefore(h.stage),
	}
}
