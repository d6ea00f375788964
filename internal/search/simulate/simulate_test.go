package simulate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/simulate"
)

var loss = berth.Objective{Metric: "loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyLast}

// listed are trials in a given order.
func listed(runs ...simulate.Run) func([]berth.Observation) (berth.Assignment, simulate.Run, bool, error) {
	return func(past []berth.Observation) (berth.Assignment, simulate.Run, bool, error) {
		if len(past) == len(runs) {
			return nil, simulate.Run{}, false, nil
		}

		return berth.Assignment{"i": berth.IntValue(int64(len(past)))}, runs[len(past)], true, nil
	}
}

func run(seconds float64, values ...float64) (r simulate.Run) {
	r.Values = values
	for range values {
		r.Seconds = append(r.Seconds, seconds)
	}

	return r
}

func TestSweep(t *testing.T) {
	t.Parallel()

	runs := listed(run(10, 5, 4), run(10, 6, 1), run(5, math.NaN()), run(10, 3, 3))

	for name, tt := range map[string]struct {
		world simulate.World
		want  simulate.Outcome
	}{
		"one after the other": {simulate.World{AtOnce: 1, Trials: 9}, simulate.Outcome{
			Best: 1, Trial: 2, Ended: []int{1, 2, 3, 4}, Found: []float64{4, 1, 1, 1}, Spent: []float64{20, 40, 45, 65}, Seconds: 65, Wall: 65,
		}},
		"two at once, three in all": {simulate.World{AtOnce: 2, Trials: 3}, simulate.Outcome{
			Best: 1, Trial: 2, Ended: []int{1, 2, 3}, Found: []float64{4, 1, 1}, Spent: []float64{30, 40, 45}, Seconds: 45, Wall: 25,
		}},
		"asha": {simulate.World{AtOnce: 1, Trials: 4, EarlyStop: &berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: 2, Eta: 2}}, simulate.Outcome{
			Best: 3, Trial: 4, Ended: []int{1, 2, 3, 4}, Found: []float64{4, 4, 4, 3}, Spent: []float64{20, 30, 35, 55}, Seconds: 55, Wall: 55, Stopped: 1,
		}},
		"patience keeps the value": {simulate.World{AtOnce: 1, Trials: 1, EarlyStop: &berth.EarlyStop{Rule: berth.StopPatience, Min: 1, Patience: 1}}, simulate.Outcome{
			Best: 4, Trial: 1, Ended: []int{1}, Found: []float64{4}, Spent: []float64{20}, Seconds: 20, Wall: 20,
		}},
	} {
		tt.world.Objective, tt.world.Choose = loss, runs

		got, err := simulate.Sweep(tt.world)
		require.NoError(t, err)

		best := got.Past[got.Trial-1]
		require.InDelta(t, got.Best, *best.Value, 0, name)
		require.Equal(t, berth.TrialSucceeded, best.State, name)

		got.Past = nil
		require.Equal(t, tt.want, got, name)
	}
}

// A search learns from what its trials would have reported.
func TestSearched(t *testing.T) {
	t.Parallel()

	spec := berth.Spec{
		Parameters: []berth.Parameter{{Name: "x", Type: berth.ParameterFloat, Min: new(0.0), Max: new(1.0)}},
		Objective:  &loss, Search: berth.SearchSpec{Algorithm: berth.SearchGP, Startup: 5}, Limits: berth.Limits{MaxTrials: 20},
	}

	choose, err := simulate.Searched(spec, func(a berth.Assignment) (berth.Assignment, simulate.Run, bool) {
		x, _ := a["x"].Number()

		return a, run(1, 1, (x-0.3)*(x-0.3)), true
	})
	require.NoError(t, err)

	got, err := simulate.Sweep(simulate.World{Objective: loss, Trials: 99, AtOnce: 4, Choose: choose})
	require.NoError(t, err)
	require.Len(t, got.Found, 20, "limits.max_trials ends it")
	require.Less(t, got.Best, 1e-4)
	require.InDelta(t, 40, got.Seconds, 0)
	require.InDelta(t, 10, got.Wall, 0)
}
