package spec

import (
	"slices"
	"strconv"

	"github.com/berthml/berth"
)

// Warnings lists possible mistakes of a valid spec, in the order of its fields;
// the preview shows them. None of them stops a sweep.
func Warnings(s berth.Spec) []berth.Problem {
	var out []berth.Problem

	if !slices.ContainsFunc(s.Parameters, berth.Parameter.Searched) {
		out = append(out, problem(CodeNoSearch, "/parameters", "no parameter is searched, so the sweep is one trial"))
	}

	for i, p := range s.Parameters {
		out = append(out, unusedFields(s.Search.Algorithm, p, "/parameters/"+strconv.Itoa(i))...)
	}

	marked := slices.ContainsFunc(s.Parameters, func(p berth.Parameter) bool { return p.Memory != nil })
	decides := slices.ContainsFunc(s.Parameters, func(p berth.Parameter) bool {
		return p.Type == berth.ParameterInt || p.Type == berth.ParameterCategorical
	})

	if !marked && decides && s.Probe.Mode != berth.ProbeOff {
		out = append(out, problem(CodeMemoryMarks, "/parameters", "no parameter is marked memory: true or false, so every int and categorical "+
			"parameter is taken to change the memory and each combination is probed; mark those that do"))
	}

	return append(out, stageWarnings(s)...)
}

// unusedFields reports fields that mean something to another algorithm only.
func unusedFields(algorithm string, p berth.Parameter, at string) []berth.Problem {
	var out []berth.Problem

	add := func(name, algorithms string) {
		out = append(out, problem(CodeFieldUnused, at+"/"+name, "%s is for %s search; %s search does not look at it", name, algorithms, algorithm))
	}

	if p.Count > 0 && algorithm != berth.SearchGrid {
		add("count", berth.SearchGrid)
	}

	if len(p.Probabilities) > 0 && algorithm != berth.SearchRandom && algorithm != berth.SearchSobol {
		add("probabilities", "random and sobol")
	}

	return out
}
