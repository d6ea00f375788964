package spec

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/berthml/berth"
)

const (
	defaultProbe   = 2 * time.Minute
	defaultStartup = 10 // Optuna's n_startup_trials
)

// applyDefaults fills in values that depend on other fields and gives every
// value the type of its parameter. clean says whether a section was read
// without a problem.
func applyDefaults(s *berth.Spec, clean func(pointer string) bool) {
	if len(s.Parameters) == 0 && len(s.Enqueue) > 0 && clean("/parameters") && clean("/enqueue") &&
		(s.Search.Algorithm == "" || s.Search.Algorithm == berth.SearchList) {
		s.Parameters = parametersOf(s.Enqueue)
		s.Search.Algorithm = berth.SearchList
	}

	switch {
	case s.Search.Algorithm != "":
	case s.Objective != nil && slices.ContainsFunc(s.Parameters, berth.Parameter.Searched):
		s.Search.Algorithm = berth.SearchAuto
	default:
		s.Search.Algorithm = berth.SearchRandom
	}

	if s.Search.Learns() && s.Search.Startup == 0 {
		s.Search.Startup = defaultStartup
	}

	if s.Probe.MaxDuration == 0 {
		s.Probe.MaxDuration = min(berth.Duration(defaultProbe), s.Limits.MaxTrialDuration)
	}

	typeValues(s)
}

// parametersOf declares the parameters of a sweep that only lists its trials: each is
// a choice among the listed values. A name with a fraction among its numbers does not
// count for memory, as a float does not, nor does a name that differs in each trial,
// such as a seed: its every value would be a shape to measure.
func parametersOf(enqueue []berth.Assignment) []berth.Parameter {
	values := map[string]berth.Values{}
	seen := map[string]map[berth.Value]bool{}

	for _, a := range enqueue {
		for name, v := range a {
			if seen[name] == nil {
				seen[name] = map[berth.Value]bool{}
			}

			if id := identity(v); !seen[name][id] {
				seen[name][id] = true
				values[name] = append(values[name], v)
			}
		}
	}

	out := make([]berth.Parameter, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p := berth.Parameter{Name: name, Type: berth.ParameterCategorical, Values: values[name]}
		if len(p.Values) == len(enqueue) || slices.ContainsFunc(p.Values, isFraction) {
			p.Memory = new(false)
		}

		out = append(out, p)
	}

	return out
}

func isFraction(v berth.Value) bool {
	number, ok := v.Number()

	return ok && number != math.Trunc(number)
}

// typeValues turns the 1 of a float parameter into 1.0 and so on, wherever a
// value is written, so that values of one parameter compare with ==.
func typeValues(s *berth.Spec) {
	byName := make(map[string]typed, len(s.Parameters))
	for _, p := range s.Parameters {
		byName[p.Name] = typedOf(p)
	}

	for i := range s.Parameters {
		p := &s.Parameters[i]

		if p.Default != nil {
			v := typedOf(*p).value(*p.Default)
			p.Default = &v
		}

		for parent, values := range p.When {
			for j, v := range values {
				values[j] = byName[parent].value(v)
			}
		}
	}

	for _, a := range s.Enqueue {
		for name, v := range a {
			a[name] = byName[name].value(v)
		}
	}
}

// typed knows how the values of one parameter are stored. The zero typed
// leaves a value alone.
type typed struct {
	kind   berth.ParameterType
	stored map[berth.Value]berth.Value // by identity, of a choice
}

func typedOf(p berth.Parameter) typed {
	t := typed{kind: p.Type, stored: make(map[berth.Value]berth.Value, len(p.Values))}

	for _, v := range p.Values {
		t.stored[identity(v)] = v
	}

	if p.Value != nil {
		t.stored[identity(*p.Value)] = *p.Value
	}

	return t
}

func (t typed) value(v berth.Value) berth.Value {
	number, isNumber := v.Number()

	switch {
	case t.kind == berth.ParameterFloat && isNumber:
		return berth.FloatValue(number)
	case t.kind == berth.ParameterInt && isNumber && number == float64(int64(number)):
		return berth.IntValue(int64(number))
	}

	if stored, ok := t.stored[identity(v)]; ok {
		return stored
	}

	return v
}

// hasValue says whether v is one of the choices.
func (t typed) hasValue(v berth.Value) bool {
	_, ok := t.stored[identity(v)]

	return ok
}

// identity is equal for values a user would call equal: 1 and 1.0.
func identity(v berth.Value) berth.Value {
	if number, ok := v.Number(); ok {
		return berth.FloatValue(number)
	}

	return v
}
