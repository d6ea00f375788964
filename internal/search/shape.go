package search

import "github.com/berthml/berth"

// MemoryParameters names the parameters whose values decide memory, in the
// order of the document: those marked memory: true or, when none is, every int
// and categorical parameter.
func MemoryParameters(s berth.Spec) []string {
	var marked, assumed []string

	for _, p := range s.Parameters {
		if p.Memory {
			marked = append(marked, p.Name)
		}

		if p.Type == berth.ParameterInt || p.Type == berth.ParameterCategorical {
			assumed = append(assumed, p.Name)
		}
	}

	if len(marked) > 0 {
		return marked
	}

	return assumed
}

// ShapeValues is the part of an assignment that decides memory. Inactive
// parameters are absent, so that trials with and without one differ.
func ShapeValues(s berth.Spec, a berth.Assignment) berth.Assignment {
	shape := berth.Assignment{}

	for _, name := range MemoryParameters(s) {
		if v, ok := a[name]; ok {
			shape[name] = v
		}
	}

	return shape
}

// ShapeOf returns the shape of one assignment: trials of one shape share a probe.
func ShapeOf(s berth.Spec, imageDigest string, values berth.Assignment) berth.Shape {
	return berth.Shape{
		ImageDigest: imageDigest,
		Command:     s.Command,
		Values:      ShapeValues(s, values),
		Stage:       berth.StageMain,
		Environment: s.EnvironmentVariables,
		CPUMilli:    s.Resources.ThreadCapMilli(),
	}
}
