package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/spec"
)

// tryLabel marks sweeps that are tries.
const tryLabel = "berth/try"

// tryOf makes a sweep of one trial of a sweep file. Without settings its values are
// the file's first enqueued ones, else the defaults where every parameter has one,
// else the first that the search draws.
func tryOf(file *sweepFile, settings []string) (berth.Spec, error) {
	s, err := spec.Decode(file.data, file.contentType)
	if err != nil {
		return s, tryProblems(file, err)
	}

	if err := apply(&s, settings); err != nil {
		return s, err
	}

	s.Name += " (try)"
	s.Labels = maps.Clone(s.Labels)

	if s.Labels == nil {
		s.Labels = map[string]string{}
	}

	s.Labels[tryLabel] = "true"
	s.Limits.MaxTrials, s.Limits.MaxParallel, s.Limits.MaxFailedTrials = 1, 1, 1

	if s.Search.Algorithm == berth.SearchGrid {
		s.Search.Algorithm = berth.SearchRandom // it ends after one trial as well, and takes what is enqueued first
	}

	return s, nil
}

// tryJSON is the sweep file of a try. What it refuses comes from --set: the file was
// accepted.
func tryJSON(s berth.Spec) (*sweepFile, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}

	if _, err := spec.Decode(data, "application/json"); err != nil {
		return nil, tryProblems(nil, err)
	}

	return &sweepFile{name: "the try", data: data, contentType: "application/json"}, nil
}

// tryProblems lists what is wrong with a file, or with the values of --set.
func tryProblems(file *sweepFile, err error) error {
	problem, ok := errors.AsType[*berth.SpecError](err)
	if !ok {
		return err
	}

	lines := []string{}

	for _, p := range problem.Problems {
		line := "--set: " + p.Message
		if file != nil {
			line = file.place(p.Pointer) + p.Code + " " + p.Pointer + ": " + p.Message
		}

		lines = append(lines, "  "+line)
	}

	return exitf(ExitValidation, "nothing was submitted, as there is %s:\n%s", plural(len(lines), "problem", "problems"), strings.Join(lines, "\n"))
}

// apply chooses the values of the one trial.
func apply(s *berth.Spec, settings []string) error {
	values := berth.Assignment{}
	if len(s.Enqueue) > 0 {
		values = maps.Clone(s.Enqueue[0])
	}

	for _, setting := range settings {
		name, text, found := strings.Cut(setting, "=")
		if !found {
			return exitf(ExitUsage, "--set %q sets nothing; write --set NAME=VALUE, such as --set epochs=1", setting)
		}

		if err := set(s, values, name, text); err != nil {
			return err
		}
	}

	if len(s.Enqueue) == 0 && len(settings) == 0 && !allHaveDefaults(*s) {
		return nil // the first that the search draws
	}

	complete(*s, values)
	s.Enqueue = []berth.Assignment{values}

	return nil
}

// set gives one parameter a value: the trial's, or a fixed one's.
func set(s *berth.Spec, values berth.Assignment, name, text string) error {
	i := slices.IndexFunc(s.Parameters, func(p berth.Parameter) bool { return p.Name == name })
	if i < 0 {
		names := make([]string, len(s.Parameters))
		for j, p := range s.Parameters {
			names[j] = p.Name
		}

		return exitf(ExitUsage, "--set %s: the sweep file has no parameter of this name; it has %s", name, strings.Join(names, ", "))
	}

	p := &s.Parameters[i]
	v, ok := parsed(*p, text)

	switch {
	case p.Type == berth.ParameterDerived:
		return exitf(ExitUsage, "--set %s: its value is computed (%s); set what it is computed from", name, p.Expr)
	case !ok, p.Searched() && outside(*p, v):
		return exitf(ExitUsage, "--set %s=%s: the sweep file wants %s", name, text, kindText(*p))
	case p.Type == berth.ParameterFixed:
		p.Value = &v
	default:
		values[name] = v
	}

	return nil
}

// outside reports whether a number is not in the range of its parameter.
func outside(p berth.Parameter, v berth.Value) bool {
	number, isNumber := v.Number()

	return isNumber && (p.Min != nil && number < *p.Min || p.Max != nil && number > *p.Max)
}

// kindText is what a parameter takes.
func kindText(p berth.Parameter) string {
	const (
		whole  = "a whole number"
		number = "a number"
		truth  = "true or false"
	)

	if p.Min != nil && p.Max != nil {
		return fmt.Sprintf("%s from %g to %g", map[bool]string{true: whole, false: number}[p.Type == berth.ParameterInt], *p.Min, *p.Max)
	}

	if p.Type != berth.ParameterCategorical && p.Value != nil {
		switch p.Value.Any().(type) {
		case int64:
			return whole
		case float64:
			return number
		default:
			return truth
		}
	}

	texts := make([]string, len(p.Values))
	for i, v := range p.Values {
		texts[i] = v.String()
	}

	return "one of " + strings.Join(texts, ", ")
}

// parsed reads a value of a parameter's type.
func parsed(p berth.Parameter, text string) (berth.Value, bool) {
	wanted := p.Type

	if p.Type == berth.ParameterFixed && p.Value != nil {
		switch p.Value.Any().(type) {
		case int64:
			wanted = berth.ParameterInt
		case float64:
			wanted = berth.ParameterFloat
		case bool:
			v, err := strconv.ParseBool(text)

			return berth.BoolValue(v), err == nil
		default:
			return berth.StringValue(text), true
		}
	}

	switch wanted {
	case berth.ParameterInt:
		n, err := strconv.ParseInt(text, 10, 64)

		return berth.IntValue(n), err == nil
	case berth.ParameterFloat:
		v, err := strconv.ParseFloat(text, 64)

		return berth.FloatValue(v), err == nil && v-v == 0 // no NaN, no infinity
	default:
		i := slices.IndexFunc(p.Values, func(v berth.Value) bool { return same(v, text) })
		if i < 0 {
			return berth.Value{}, false
		}

		return p.Values[i], true
	}
}

// same compares as people do: 0.10 is 0.1.
func same(v berth.Value, text string) bool {
	number, isNumber := v.Number()
	other, err := strconv.ParseFloat(text, 64)

	return v.String() == text || isNumber && err == nil && number == other
}

func allHaveDefaults(s berth.Spec) bool {
	return !slices.ContainsFunc(s.Parameters, func(p berth.Parameter) bool { return p.Searched() && p.Default == nil })
}

// complete gives a value to what is active and has no default: the first choice, or
// the middle of the range.
func complete(s berth.Spec, values berth.Assignment) {
	full := maps.Clone(values)

	for range s.Parameters { // a parameter may wait for a later one
		for _, p := range s.Parameters {
			if _, ok := full[p.Name]; ok || !p.Active(full) {
				continue
			}

			switch {
			case p.Type == berth.ParameterFixed && p.Value != nil:
				full[p.Name] = *p.Value
			case p.Default != nil:
				full[p.Name] = *p.Default
			case p.Type == berth.ParameterCategorical:
				values[p.Name] = p.Values[0]
				full[p.Name] = p.Values[0]
			case p.Searched():
				values[p.Name] = middle(p)
				full[p.Name] = values[p.Name]
			}
		}
	}
}

// middle is the second of three points of a range, on its own scale.
func middle(p berth.Parameter) berth.Value {
	const points = 3

	p.Step, p.Count = nil, points
	n, _ := p.Points(berth.SearchGrid)

	return p.Point(berth.SearchGrid, n/2)
}
