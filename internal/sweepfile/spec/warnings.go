package spec

import (
	"maps"
	"slices"
	"strconv"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

// Warnings lists possible mistakes of a valid spec, in the order of its fields;
// the preview shows them. None of them stops a sweep.
func Warnings(s berth.Spec) []berth.Problem {
	var out []berth.Problem

	used := usedNames(s)

	for i, p := range s.Parameters {
		out = append(out, unusedFields(s.Search.Algorithm, p, "/parameters/"+strconv.Itoa(i))...)

		if len(used) > 0 && p.Searched() && !used[p.Name] {
			out = append(out, problem(CodeParamUnused, "/parameters/"+strconv.Itoa(i),
				"the command and environment_variables use other parameters and not %q; add {{%s}}, unless the program reads TRIAL_PARAMS_FILE", p.Name, p.Name))
		}
	}

	marked := slices.ContainsFunc(s.Parameters, func(p berth.Parameter) bool { return p.Memory != nil })
	decides := slices.ContainsFunc(s.Parameters, func(p berth.Parameter) bool {
		return p.Type == berth.ParameterInt || p.Type == berth.ParameterCategorical
	})

	if !marked && decides && s.Probe.Mode != berth.ProbeOff {
		out = append(out, problem(CodeMemoryMarks, "/parameters", "no parameter is marked memory: true or false, so every int and categorical "+
			"parameter is taken to change the memory and each combination is probed; mark those that do"))
	}

	return out
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

	if len(p.Probabilities) > 0 && algorithm != berth.SearchRandom {
		add("probabilities", berth.SearchRandom)
	}

	return out
}

// usedNames are the parameters that the command and environment_variables use,
// directly or through derived values and conditions; empty when they use none.
func usedNames(s berth.Spec) map[string]bool {
	used := map[string]bool{}
	for _, name := range argv.Names(slices.AppendSeq(slices.Clone(s.Command), maps.Values(s.EnvironmentVariables))) {
		used[name] = true
	}

	if len(used) == 0 {
		return used
	}

	uses := usesOf(s.Parameters, func(int, error) {})

	for size := 0; size != len(used); { // until a round adds nothing
		size = len(used)

		for _, p := range s.Parameters {
			if !used[p.Name] {
				continue
			}

			for _, name := range slices.AppendSeq(uses[p.Name], maps.Keys(p.When)) {
				used[name] = true
			}
		}
	}

	return used
}
