package cli

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// tryLabel marks sweeps that are tries.
const tryLabel = "berth/try"

// tryOf makes a sweep of one trial of a sweep file. Without settings its values are
// the file's first enqueued ones, else the defaults where every parameter has one,
// else the search's first draw. The values of --set are enqueued, and checked like
// a file's.
func tryOf(file *sweepFile, settings []string) (*sweepFile, error) {
	one, err := spec.Decode(file.data, file.contentType)
	if err != nil {
		return nil, tryProblems(err, func(p berth.Problem) string { return file.place(p.Pointer) + p.Code + " " + p.Pointer })
	}

	values := berth.Assignment{}
	if len(one.Enqueue) > 0 {
		values = maps.Clone(one.Enqueue[0])
	}

	for _, setting := range settings {
		name, text, found := strings.Cut(setting, "=")
		if !found {
			return nil, exitf(ExitUsage, "--set %q sets nothing; write --set NAME=VALUE, such as --set epochs=1", setting)
		}

		set(one.Parameters, values, name, text)
	}

	lacksDefault := func(p berth.Parameter) bool { return p.Searched() && p.Default == nil }
	if len(values) > 0 || !slices.ContainsFunc(one.Parameters, lacksDefault) {
		one.Enqueue = []berth.Assignment{values}
	}

	one.Name += " (try)"
	one.Labels = maps.Clone(one.Labels)

	if one.Labels == nil {
		one.Labels = map[string]string{}
	}

	one.Labels[tryLabel] = "true"
	one.Limits.MaxTrials, one.Limits.MaxParallel, one.Limits.MaxFailedTrials = 1, 1, 1

	if one.Search.Algorithm == berth.SearchGrid {
		one.Search.Algorithm = berth.SearchRandom // it ends after one trial as well, and takes enqueued values first
	}

	data, err := json.Marshal(one)
	if err != nil {
		return nil, err
	}

	if _, err := spec.Decode(data, "application/json"); err != nil {
		return nil, tryProblems(err, func(berth.Problem) string { return "--set" })
	}

	return &sweepFile{name: "the try", data: data, contentType: "application/json"}, nil
}

// set gives one parameter a value: a fixed one's, or the trial's.
func set(parameters []berth.Parameter, values berth.Assignment, name, text string) {
	at := slices.IndexFunc(parameters, func(p berth.Parameter) bool { return p.Name == name })

	var v berth.Value
	if json.Unmarshal([]byte(text), &v) != nil {
		v = berth.StringValue(text)
	}

	if at < 0 || parameters[at].Type != berth.ParameterFixed {
		values[name] = v

		return
	}

	if old := parameters[at].Value; old != nil {
		if _, isText := old.Any().(string); isText {
			v = berth.StringValue(text)
		}
	}

	parameters[at].Value = &v
}

// tryProblems lists the problems of a file, or of the values of --set.
func tryProblems(err error, place func(berth.Problem) string) error {
	problem, ok := errors.AsType[*berth.SpecError](err)
	if !ok {
		return err
	}

	lines := make([]string, len(problem.Problems))
	for i, p := range problem.Problems {
		lines[i] = "  " + place(p) + ": " + p.Message
	}

	return exitf(ExitValidation, "nothing was submitted, as there is %s:\n%s", plural(len(lines), "problem", "problems"), strings.Join(lines, "\n"))
}
