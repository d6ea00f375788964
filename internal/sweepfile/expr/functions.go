package expr

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/builtin"
)

// maxWhole is the largest whole number a float64 holds exactly with all below.
const maxWhole = 1 << 53

// maxOperands bounds min(a, b, …) and max(a, b, …).
const maxOperands = 32

// function takes between min and max numbers. whole says when its result is
// a whole number.
type function struct {
	min, max int
	whole    func(operands bool, v []float64) bool
	compute  func(v []float64) float64
}

func never(bool, []float64) bool                 { return false }
func always(bool, []float64) bool                { return true }
func asOperands(operands bool, _ []float64) bool { return operands }

// notBelowOne is for powers: powers with an exponent below 0 are fractions.
func notBelowOne(operands bool, v []float64) bool { return operands && v[1] >= 0 }

func one(f func(float64) float64) func([]float64) float64 {
	return func(v []float64) float64 { return f(v[0]) }
}

// functions are the calls and the arithmetic operators.
var functions = map[string]function{
	"abs":   {1, 1, asOperands, one(math.Abs)},
	"ceil":  {1, 1, always, one(math.Ceil)},
	"exp":   {1, 1, never, one(math.Exp)},
	"floor": {1, 1, always, one(math.Floor)},
	"log":   {1, 1, never, one(math.Log)}, // natural
	"max":   {1, maxOperands, asOperands, slices.Max[[]float64]},
	"min":   {1, maxOperands, asOperands, slices.Min[[]float64]},
	"pow":   {2, 2, never, func(v []float64) float64 { return math.Pow(v[0], v[1]) }},
	"round": {1, 1, always, one(math.RoundToEven)}, // half to even, as in Python 3
	"sqrt":  {1, 1, never, one(math.Sqrt)},

	"+":  {2, 2, asOperands, func(v []float64) float64 { return v[0] + v[1] }},
	"-":  {2, 2, asOperands, func(v []float64) float64 { return v[0] - v[1] }},
	"*":  {2, 2, asOperands, func(v []float64) float64 { return v[0] * v[1] }},
	"/":  {2, 2, never, func(v []float64) float64 { return v[0] / v[1] }},
	"//": {2, 2, asOperands, func(v []float64) float64 { return math.Floor(v[0] / v[1]) }},
	"%":  {2, 2, asOperands, func(v []float64) float64 { return v[0] - v[1]*math.Floor(v[0]/v[1]) }},
	"**": {2, 2, notBelowOne, func(v []float64) float64 { return math.Pow(v[0], v[1]) }},
}

// callable are the names of the functions that a text may call.
func callable() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(functions)), func(name string) bool { return name < "a" })
}

// inside is how the library knows a function; a parameter may be called log.
func inside(name string) string { return "call " + name }

// library is f as the library calls it.
func (f function) library(name string) *builtin.Function {
	return &builtin.Function{
		Name:     inside(name),
		Validate: func(types []reflect.Type) (reflect.Type, error) { return f.accept(name, types) },
		Func:     func(args ...any) (any, error) { return f.call(name, args) },
	}
}

// accept checks a call before anything is computed.
func (f function) accept(name string, types []reflect.Type) (reflect.Type, error) {
	number := reflect.TypeFor[float64]()

	if len(types) < f.min || len(types) > f.max {
		takes := strconv.Itoa(f.min)
		if f.max > f.min {
			takes += fmt.Sprintf(" to %d", f.max)
		}

		return number, fmt.Errorf("%d values for %s, which takes %s", len(types), name, takes)
	}

	for _, t := range types {
		if kind := typeOf(t); kind != Number && kind != Any {
			return number, fmt.Errorf("%s where %q needs a number", kind, name)
		}
	}

	return number, nil
}

// call computes with float64. It returns an int64 when the operation gives
// whole numbers and the result is exact.
func (f function) call(name string, args []any) (any, error) {
	numbers, whole := make([]float64, len(args)), true

	for i, arg := range args {
		switch v := arg.(type) {
		case int: // a literal
			numbers[i] = float64(v)
		case int64:
			numbers[i] = float64(v)
		case float64:
			numbers[i], whole = v, false
		default:
			return nil, fmt.Errorf("%v where %q needs a number", arg, name)
		}
	}

	result := f.compute(numbers)

	switch {
	case math.IsNaN(result) || math.IsInf(result, 0):
		return nil, fmt.Errorf("no finite result for %q", name)
	case f.whole(whole, numbers) && math.Abs(result) <= maxWhole:
		return int64(result), nil
	default:
		return result, nil
	}
}
