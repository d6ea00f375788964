package search

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func newProcess() *process {
	nan := math.NaN()

	return &process{
		apart:  []bool{false, true, false},
		points: [][]float64{{.1, 0, .3}, {.4, 1, nan}, {.8, 0, .9}, {.15, 2, .35}, {.6, 1, nan}},
		scores: []float64{-1, .4, 1.2, -.6, .1},
		theta:  theta{weights: []float64{.7, -.2, .4}, scale: .3, noise: -3},
	}
}

// The slope is that of the value.
func TestProcess_SlopeOfThePosterior(t *testing.T) {
	t.Parallel()

	g := newProcess()
	at := append(append([]float64{}, g.theta.weights...), g.theta.scale, g.theta.noise)
	slope, none := make([]float64, len(at)), make([]float64, len(at))
	g.posterior(at, slope, g.differences())

	for i := range at {
		const step = 1e-5

		up, down := append([]float64{}, at...), append([]float64{}, at...)
		up[i] += step
		down[i] -= step
		want := (g.posterior(up, none, g.differences()) - g.posterior(down, none, g.differences())) / (2 * step)
		require.InDelta(t, want, slope[i], 1e-6, "theta %d", i)
	}

	before := g.posterior(at, none, g.differences())
	g.theta = newTheta(3)
	g.fit()

	fitted := append(append([]float64{}, g.theta.weights...), g.theta.scale, g.theta.noise)
	require.Less(t, g.posterior(fitted, none, g.differences()), before)
}

// A factor that grew row by row is one of the covariance, and its inverse is that.
func TestProcess_FactorAndInverse(t *testing.T) {
	t.Parallel()

	g := newProcess()
	weights := g.weights()

	for range g.points {
		g.add(weights)
	}

	covariance := func(i, k int) float64 {
		row := make([]float64, i+1)
		g.covariances(g.points[i], row, weights)

		if i == k {
			row[k] += g.noise()
		}

		return row[k]
	}
	inverse := g.factor.inverse()
	lower := func(m [][]float64, i, k int) float64 { return m[max(i, k)][min(i, k)] }

	for i := range g.points {
		for k := range i + 1 {
			require.InDelta(t, covariance(i, k), dot(g.factor[i][:k+1], g.factor[k]), 1e-12)
		}

		for k := range g.points {
			sum := 0.0
			for m := range g.points {
				sum += covariance(max(i, m), min(i, m)) * lower(inverse, m, k)
			}

			want := 0.0
			if i == k {
				want = 1
			}

			require.InDelta(t, want, sum, 1e-9)
		}
	}
}

// Bad trials count by rank and good ones by their distances; what cannot work is worst.
func TestNormalScores(t *testing.T) {
	t.Parallel()

	sorted := []known{{end: complete, loss: 1}, {end: complete, loss: 2}, {end: complete, loss: 5}, {end: complete, loss: 1e9}, {end: infeasible}, {end: infeasible}}
	scores := normalScores(sorted)
	require.InDelta(t, -1.383, scores[0], 1e-3) // of rank 1/12
	require.InDelta(t, scores[3], scores[0]+(scores[3]-scores[0])*1, 0)
	require.InDelta(t, scores[0]+(scores[3]-scores[0])/(1e9-1), scores[1], 1e-9)
	require.InDelta(t, .210, scores[3], 1e-3)
	require.InDelta(t, scores[4], scores[5], 0)
	require.Greater(t, scores[4], scores[3])
}

// A process takes the last value of a stopped trial for its result; TPE puts stopped trials
// behind all with a result, the one that came further first.
func TestSplit_StoppedTrials(t *testing.T) {
	t.Parallel()

	at := func(number int, e end, loss float64, step int64) known {
		return known{number: number, end: e, loss: loss, step: step, at: []float64{float64(number)}}
	}
	p := &past{tried: map[string]bool{}}

	for _, k := range []known{at(1, infeasible, 0, 0), at(2, stopped, .1, 3), at(3, complete, .5, 0), at(4, stopped, .4, 9), at(5, complete, .2, 0), at(6, open, 0, 0)} {
		p.add(k)
	}

	numbers := func(trials []known) (out []int) {
		for _, k := range trials {
			out = append(out, k.number)
		}

		return out
	}

	ended, waiting := p.split()
	require.Equal(t, []int{2, 5, 4, 3, 1}, numbers(ended))
	require.Equal(t, []int{6}, numbers(waiting))

	for n, want := range [][]int{{}, {5}, {5, 3}, {5, 3, 4}, {5, 3, 4, 2}, {5, 3, 4, 2, 1}} {
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(p.best(n))))
	}
}

// A stopped trial teaches its last value; one that was stopped without a number cannot work.
func TestObserve_StoppedTrials(t *testing.T) {
	t.Parallel()

	s, err := New(berth.Spec{
		Parameters: []berth.Parameter{{Name: "x", Type: berth.ParameterFloat, Min: new(0.0), Max: new(1.0)}},
		Search:     berth.SearchSpec{Algorithm: berth.SearchGP}, Objective: &berth.Objective{Goal: berth.GoalMaximize}, Limits: berth.Limits{MaxTrials: 9},
	})
	require.NoError(t, err)

	p := s.observe([]berth.Observation{
		{Number: 1, Params: berth.Assignment{"x": berth.FloatValue(.5)}, State: berth.TrialPruned, Kind: berth.FailurePruned, Value: new(.25), Step: 3},
		{Number: 2, Params: berth.Assignment{"x": berth.FloatValue(.6)}, State: berth.TrialPruned, Kind: berth.FailurePruned},
	}, nil)
	require.Equal(t, []known{
		{number: 1, at: []float64{.5}, end: stopped, loss: -.25, step: 3}, {number: 2, at: []float64{.6}, end: infeasible, loss: math.Inf(1)},
	}, p.trials)
	require.Equal(t, 2, p.ended)
}

// Nothing is known of the constraints of a stopped trial: it comes behind one that broke them,
// and is no proof that they can be kept.
func TestObserve_StoppedTrialsWithConstraints(t *testing.T) {
	t.Parallel()

	s, err := New(berth.Spec{
		Parameters: []berth.Parameter{{Name: "x", Type: berth.ParameterFloat, Min: new(0.0), Max: new(1.0)}},
		Search:     berth.SearchSpec{Algorithm: berth.SearchGP}, Objective: &berth.Objective{Metric: "a", Goal: berth.GoalMaximize},
		Constraints: []berth.Constraint{{Metric: "b", Max: new(1.0)}},
	})
	require.NoError(t, err)

	p := s.observe([]berth.Observation{
		{Number: 1, Params: berth.Assignment{"x": berth.FloatValue(.5)}, State: berth.TrialPruned, Kind: berth.FailurePruned, Value: new(.25), Step: 3},
		{Number: 2, Params: berth.Assignment{"x": berth.FloatValue(.6)}, State: berth.TrialSucceeded, Results: berth.Results{"a": .1, "b": 3}},
	}, nil)
	require.Equal(t, map[int]bool{2: true}, p.best(1))

	h := (&gp{s.space}).hunt(p, rand.New(rand.NewPCG(1, 1)))
	require.Nil(t, h.least)
	require.Len(t, h.constraints, 1)
}

// A mean at a tried point is its score less its share of the noise.
func TestProcess_MeansOfTriedPoints(t *testing.T) {
	t.Parallel()

	g := newProcess()
	for range g.points {
		g.add(g.weights())
	}

	shares := append([]float64{}, g.scores...)
	g.factor.solve(shares)
	g.factor.solveUp(shares)

	column := make([]float64, len(g.points))
	for i, point := range g.points {
		g.covariances(point, column, g.weights())
		require.InDelta(t, dot(column, shares), g.scores[i]-g.noise()*shares[i], 1e-12)
	}
}
