package expr

import (
	"fmt"
	"math"
	"slices"
)

// wholeness says when a function's result is a whole number.
type wholeness int

const (
	never wholeness = iota
	always
	asOperands
)

// function takes between min and max numbers.
type function struct {
	min, max int
	is       wholeness
	compute  func([]float64) float64
}

func (f function) whole(operands bool) bool {
	return f.is == always || f.is == asOperands && operands
}

func (f function) takes() string {
	if f.min == f.max {
		return fmt.Sprint(f.min)
	}

	return fmt.Sprintf("%d to %d", f.min, f.max)
}

// maxOperands bounds min(a, b, …) and max(a, b, …).
const maxOperands = 32

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
}

func one(f func(float64) float64) func([]float64) float64 {
	return func(v []float64) float64 { return f(v[0]) }
}
