// Package functions has functions on which searches are tried: by `berth search simulate`, by
// bench/search against other programs, and by tests.
package functions

import (
	"math"
	"strconv"

	"github.com/berthml/berth"
)

// Function is a space, and a loss of each of its points that is at least zero.
type Function struct {
	Name       string
	Parameters []berth.Parameter
	Loss       func(a berth.Assignment) float64
}

// All are branin, sphere5, hartmann6 (each less its minimum), mixed4: a logarithmic
// number, a stepped one, a whole one and a choice, with a basin for each choice, and branches:
// a choice of two with parameters of their own, and one for both.
func All() []Function {
	lr, width, depth := number("lr", 1e-5, 1), number("width", 16, 512), number("depth", 1, 8)
	lr.Log, width.Type, width.Step, depth.Type = true, berth.ParameterInt, new(16.0), berth.ParameterInt
	choice := berth.Parameter{Name: "c", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(0), berth.IntValue(1), berth.IntValue(2)}}

	pair, units := choice, number("units", 16, 512)
	pair.Values, units.Type = pair.Values[:2], berth.ParameterInt

	return []Function{
		{"branin", []berth.Parameter{number("x", -5, 10), number("y", 0, 15)}, branin},
		{"sphere5", numbers(5, -5, 5), sphere5},
		{"hartmann6", numbers(6, 0, 1), hartmann6},
		{"mixed4", []berth.Parameter{lr, width, depth, choice}, mixed4},
		{"branches", []berth.Parameter{lr, pair, under(0, number("momentum", 0, 1)), under(0, depth), under(1, number("beta", 0, 1)), under(1, units)}, branches},
	}
}

// under makes a parameter active where c has a value.
func under(c int64, p berth.Parameter) berth.Parameter {
	p.When = map[string]berth.Values{"c": {berth.IntValue(c)}}

	return p
}

func number(name string, low, high float64) berth.Parameter {
	return berth.Parameter{Name: name, Type: berth.ParameterFloat, Min: &low, Max: &high}
}

// numbers are x0, x1 and so on.
func numbers(n int, low, high float64) []berth.Parameter {
	out := make([]berth.Parameter, n)
	for j := range out {
		out[j] = number("x"+strconv.Itoa(j), low, high)
	}

	return out
}

func at(a berth.Assignment, name string) float64 {
	v, _ := a[name].Number()

	return v
}

func branin(a berth.Assignment) float64 {
	x, y := at(a, "x"), at(a, "y")
	bow := y - 5.1/(4*math.Pi*math.Pi)*x*x + 5/math.Pi*x - 6

	return bow*bow + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10 - 0.39788735772973816
}

func sphere5(a berth.Assignment) float64 {
	sum := 0.0
	for j := range 5 {
		sum += math.Pow(at(a, "x"+strconv.Itoa(j))-1, 2)
	}

	return sum
}

func hartmann6(a berth.Assignment) float64 {
	scale := [4][6]float64{{10, 3, 17, 3.5, 1.7, 8}, {.05, 10, 17, .1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, .05, 10, .1, 14}}
	place := [4][6]float64{
		{.1312, .1696, .5569, .0124, .8283, .5886},
		{.2329, .4135, .8307, .3736, .1004, .9991},
		{.2348, .1451, .3522, .2883, .3047, .6650},
		{.4047, .8828, .8732, .5743, .1091, .0381},
	}
	sum := 3.322368011391339

	for i, weight := range []float64{1, 1.2, 3, 3.2} {
		square := 0.0
		for j := range 6 {
			square += scale[i][j] * math.Pow(at(a, "x"+strconv.Itoa(j))-place[i][j], 2)
		}

		sum -= weight * math.Exp(-square)
	}

	return sum
}

func mixed4(a berth.Assignment) float64 {
	c := int(at(a, "c"))

	return math.Pow(math.Log10(at(a, "lr"))+[]float64{1, 3, 2.5}[c], 2) + .3*math.Pow((at(a, "width")-256)/128, 2) +
		.1*math.Pow(at(a, "depth")-4, 2) + []float64{.2, 0, .5}[c]
}

func branches(a berth.Assignment) float64 {
	square := func(x float64) float64 { return x * x }
	rate := math.Log10(at(a, "lr"))

	if at(a, "c") == 0 {
		return square(rate+3) + 4*square(at(a, "momentum")-.9) + .1*square(at(a, "depth")-4)
	}

	return square(rate+1) + 4*square(at(a, "beta")-.3) + .3*square((at(a, "units")-256)/128) + .2
}
