package berth

import (
	"math"
	"slices"
	"strconv"
)

// ParameterType says how a parameter gets its value.
type ParameterType string

// The types of a parameter in a sweep file.
const (
	ParameterFloat       ParameterType = "float"       // a real number in [Min, Max]
	ParameterInt         ParameterType = "int"         // a whole number in [Min, Max]
	ParameterCategorical ParameterType = "categorical" // one of Values
	ParameterFixed       ParameterType = "fixed"       // always Value; not searched
	ParameterDerived     ParameterType = "derived"     // Expr over the others; not searched
)

// Parameter is one named dimension of a search space. Bounds are inclusive.
type Parameter struct {
	Name          string            `json:"name"` // [A-Za-z_][A-Za-z0-9_]{0,63}
	Type          ParameterType     `json:"type"`
	Min           *float64          `json:"min,omitempty"`   // float and int
	Max           *float64          `json:"max,omitempty"`   // float and int; at most 2^53 for int
	Step          *float64          `json:"step,omitempty"`  // > 0; nil = continuous (float) or 1 (int)
	Log           bool              `json:"log,omitempty"`   // sample uniformly in log space; Min > 0
	Count         int               `json:"count,omitempty"` // grid points over [Min, Max]; 0 = not given
	Values        Values            `json:"values,omitempty"`
	Probabilities []float64         `json:"probabilities,omitempty"` // parallel to Values, sums to 1; nil = uniform
	Value         *Value            `json:"value,omitempty"`         // fixed
	Expr          string            `json:"expr,omitempty"`          // derived; arithmetic over other parameters
	Default       *Value            `json:"default,omitempty"`
	When          map[string]Values `json:"when,omitempty"`   // active iff every parent has one of these values
	Memory        *bool             `json:"memory,omitempty"` // whether the value changes the memory a trial needs; nil = not said
}

// Searched reports whether the search chooses the value.
func (p Parameter) Searched() bool {
	return p.Type != ParameterFixed && p.Type != ParameterDerived
}

// Marked reports whether the user marked that the value changes memory, and
// whether they marked that it does not. Both are false without a mark.
func (p Parameter) Marked() (changes, keeps bool) {
	return p.Memory != nil && *p.Memory, p.Memory != nil && !*p.Memory
}

// Active reports whether every parent the parameter waits for has one of the
// allowed values in a. An absent parent is inactive, and so is its child.
func (p Parameter) Active(a Assignment) bool {
	for parent, allowed := range p.When {
		v, ok := a[parent]
		if !ok || !slices.Contains(allowed, v) {
			return false
		}
	}

	return true
}

// Points counts the values a searched parameter can take under the algorithm:
// its choices, its whole numbers or its steps; for grid also its Count. ok is
// false when there are infinitely many, which a grid cannot list.
func (p Parameter) Points(algorithm string) (n int64, ok bool) {
	switch {
	case p.Type == ParameterCategorical:
		return int64(len(p.Values)), true
	case p.Min == nil || p.Max == nil:
		return 0, false
	}

	steps := p.steps()

	if algorithm == SearchGrid && p.Count > 0 && (steps == 0 || int64(p.Count) < steps) {
		return int64(p.Count), true
	}

	return steps, steps > 0
}

// Point is the i-th of the parameter's Points, from zero, in ascending order
// (choices in the order of the document). Points that come from arithmetic are
// rounded to 15 significant digits, so that the third step of 0.1 is 0.3.
func (p Parameter) Point(algorithm string, i int64) Value {
	if p.Type == ParameterCategorical {
		return p.Values[i]
	}

	n, _ := p.Points(algorithm)
	steps := p.steps()

	switch {
	case n == steps:
	case p.Step == nil: // Count chooses among the range
		return p.countPoint(i, n)
	default: // Count chooses among the steps
		i = int64(math.Round(float64(i) * float64(steps-1) / float64(n-1)))
	}

	step := 1.0
	if p.Step != nil {
		step = *p.Step
	}

	return p.number(*p.Min+float64(i)*step, 15)
}

// steps counts the values of a numeric range; zero = infinitely many.
func (p Parameter) steps() int64 {
	step := 1.0

	switch {
	case p.Step != nil:
		step = *p.Step
	case p.Type == ParameterFloat:
		return 0
	}

	return int64(math.Floor((*p.Max-*p.Min)/step+1e-9)) + 1
}

// countPoint spreads n >= 1 points evenly over the range, over its logarithm
// when Log is set. Whole numbers stay distinct: a crowded point moves up.
func (p Parameter) countPoint(i, n int64) Value {
	low, high := *p.Min, *p.Max

	switch i {
	case 0:
		return p.number(low, 17)
	case n - 1:
		return p.number(high, 17)
	}

	part := float64(i) / float64(n-1)
	if !p.Log {
		return p.number(low+part*(high-low), 15)
	}

	v := math.Exp(math.Log(low) + part*(math.Log(high)-math.Log(low)))
	if p.Type == ParameterInt { // log spacing is tightest at the bottom
		v = max(v, low+float64(i))
	}

	return p.number(v, 12)
}

// number makes a Value of the parameter's type, inside its bounds.
func (p Parameter) number(v float64, digits int) Value {
	if p.Type == ParameterInt {
		return IntValue(int64(min(max(math.Round(v), *p.Min), *p.Max)))
	}

	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64); err == nil {
		v = rounded
	}

	return FloatValue(min(max(v, *p.Min), *p.Max))
}
