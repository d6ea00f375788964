package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// mixed is a space of each kind of parameter.
func mixed(t *testing.T, change func(*berth.Spec)) *Searcher {
	t.Helper()

	number := func(name string, kind berth.ParameterType, low, high float64) berth.Parameter {
		return berth.Parameter{Name: name, Type: kind, Min: &low, Max: &high}
	}
	s := berth.Spec{
		Search: berth.SearchSpec{Algorithm: berth.SearchTPE, Startup: 10},
		Parameters: []berth.Parameter{
			number("x", berth.ParameterFloat, 0, 1), number("k", berth.ParameterInt, 8, 128),
			{Name: "c", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue("a"), berth.StringValue("b"), berth.StringValue("c")}},
			number("lr", berth.ParameterFloat, 1e-5, 1),
		},
		Objective: &berth.Objective{Metric: "loss", Goal: berth.GoalMinimize},
	}
	s.Parameters[1].Step, s.Parameters[3].Log = new(8.0), true

	if change != nil {
		change(&s)
	}

	searcher, err := New(s)
	require.NoError(t, err)

	return searcher
}

// Golden values of Optuna 5.0.0's _ParzenEstimator.log_pdf.
func TestParzen_IsOptunas(t *testing.T) {
	t.Parallel()

	sp := mixed(t, nil).space
	rows := [][]float64{{.1, 8, 0, 1e-3}, {.2, 16, 2, 1e-2}, {.7, 64, 2, .5}}
	queries := [][]float64{{.15, 16, 2, 5e-3}, {.9, 120, 1, 1e-4}}

	column := func(of [][]float64, dims ...int) [][]float64 {
		out := make([][]float64, len(of))
		for i, row := range of {
			for _, d := range dims {
				out[i] = append(out[i], row[d])
			}
		}

		return out
	}

	for _, test := range []struct {
		dims []int
		want [2]float64
	}{
		{[]int{0}, [2]float64{.366947244318, -.429548430275}},
		{[]int{1}, [2]float64{-2.225109129834, -3.575149044289}},
		{[]int{2}, [2]float64{-.741937344729, -1.658228076604}},
		{[]int{3}, [2]float64{-2.210407948811, -2.689781186858}},
		{[]int{0, 1, 2, 3}, [2]float64{-4.952592884468, -7.693946476341}},
	} {
		var dims []*dim
		for _, i := range test.dims {
			dims = append(dims, &sp.searched[i])
		}

		p := newParzen(dims, column(rows, test.dims...), false)
		require.InDeltaSlice(t, test.want[:], p.logDensities(column(queries, test.dims...)), 1e-9, "%v", test.dims)

		if len(test.dims) == 1 && test.dims[0] == 0 {
			require.InDeltaSlice(t, []float64{.2, .5, .5, 1}, p.columns[0].sigma, 1e-12)
		}
	}
}

// A density's mass is 1, also over points, and draws are where it says.
func TestParzen_DrawsByItsDensity(t *testing.T) {
	t.Parallel()

	sp := mixed(t, nil).space

	for i, points := range map[int]int{1: 16, 2: 3} {
		d := &sp.searched[i]
		p := newParzen([]*dim{d}, map[int][][]float64{1: {{8}, {64}, {64}}, 2: {{0}, {2}, {2}}}[i], false)

		var all [][]float64

		for j := range points {
			at := float64(j)
			if i == 1 {
				at = 8 + 8*at
			}

			all = append(all, []float64{at})
		}

		mass := p.logDensities(all)
		random, drawn := rand.New(rand.NewPCG(1, 2)), make(map[float64]float64)

		const draws = 100_000
		for range draws {
			drawn[p.draw(random)[0]] += 1.0 / draws
		}

		sum := 0.0

		for j, row := range all {
			sum += math.Exp(mass[j])
			require.InDelta(t, math.Exp(mass[j]), drawn[row[0]], 0.006, "%s = %v", d.Name, row[0])
		}

		require.InDelta(t, 1, sum, 1e-9)
	}
}

// Points of scipy.stats.qmc.Sobol(32, scramble=False, bits=32).
func TestSobol_IsJoeAndKuos(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		number, dim int
		want        float64
	}{{0, 0, 0}, {5, 0, .875}, {5, 1, .875}, {11, 2, .1875}, {17, 7, .34375}, {31, 19, .71875}, {23, 31, .71875}} {
		at, ok := sobol(test.number, test.dim, 0)
		require.True(t, ok)
		require.InDelta(t, test.want, at, 0, "%+v", test)
	}

	_, ok := sobol(1, 32, 0)
	require.False(t, ok)
}
