package berth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
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

// Value is one parameter value: an int64, a float64, a bool or a string.
// The zero Value is the empty string. Values are comparable with ==.
type Value struct {
	v any
}

// IntValue makes a Value of a whole number.
func IntValue(v int64) Value { return Value{v} }

// FloatValue makes a Value of a finite number; NaN never equals itself.
func FloatValue(v float64) Value { return Value{v} }

// BoolValue makes a Value of a truth value.
func BoolValue(v bool) Value { return Value{v} }

// StringValue makes a Value of a text.
func StringValue(v string) Value { return Value{v} }

// Any returns the int64, float64, bool or string inside.
func (v Value) Any() any {
	if v.v == nil {
		return ""
	}

	return v.v
}

// Number returns the value as a float64 and whether it is a number.
func (v Value) Number() (float64, bool) {
	switch n := v.v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// String is the text that replaces {{name}} in a command: floats in the
// shortest form that parses back to the same number, which Python and Go both
// read.
func (v Value) String() string {
	switch x := v.v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	default:
		return fmt.Sprint(x)
	}
}

// MarshalJSON keeps the difference between 1 and 1.0, so that a value read
// back has the type it was written with. It refuses NaN and infinities.
func (v Value) MarshalJSON() ([]byte, error) {
	f, ok := v.v.(float64)
	if !ok {
		return json.Marshal(v.Any())
	}

	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, Errorf(KindInvalid, "a parameter value must be finite, got %v", f)
	}

	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}

	return []byte(text), nil
}

// UnmarshalJSON reads a number without point and exponent as an int64 when it
// fits, any other number as a float64.
func (v *Value) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()

	var raw any
	if err := dec.Decode(&raw); err != nil {
		return fmt.Errorf("reading parameter value: %w", err)
	}

	switch x := raw.(type) {
	case json.Number:
		return v.setNumber(string(x))
	case string, bool:
		v.v = x

		return nil
	default:
		return Errorf(KindInvalid, "a parameter value must be a number, a string or true/false, got %s", data)
	}
}

func (v *Value) setNumber(text string) error {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v.v = n

			return nil
		}
	}

	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Errorf(KindInvalid, "reading number %q: %w", text, err)
	}

	v.v = f

	return nil
}

// Values is a list of choices, in the order of the document.
type Values []Value

// Assignment maps each active parameter to its value. Inactive conditional
// parameters are absent.
type Assignment map[string]Value

// Names returns the parameter names in ascending order.
func (a Assignment) Names() []string {
	return slices.Sorted(maps.Keys(a))
}

// Text is the assignment for people, such as batch=32 lr=0.01 with a space between.
func (a Assignment) Text(between string) string {
	parts := make([]string, 0, len(a))
	for _, name := range a.Names() {
		parts = append(parts, name+"="+a[name].String())
	}

	return strings.Join(parts, between)
}

// Key is a canonical text of the assignment: equal assignments have equal keys.
func (a Assignment) Key() string {
	data, err := json.Marshal(a) // encoding/json sorts map keys
	if err != nil {
		return fmt.Sprintf("unrepresentable:%v", map[string]Value(a))
	}

	return string(data)
}
