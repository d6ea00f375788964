package insight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

var (
	maximize = berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}
	minimize = berth.Objective{Metric: "acc", Goal: berth.GoalMinimize}
)

// rows are n trials with a value and parameters by their index.
func rows(n int, value func(i int) float64, params func(i int) berth.Assignment) []Trial {
	trials := make([]Trial, n)
	for i := range trials {
		trials[i] = Trial{Number: i + 1, Value: new(value(i)), Params: params(i)}
	}

	return trials
}

func rising(i int) float64 { return float64(i) }

func text(first bool, a, b string) berth.Value {
	if first {
		return berth.StringValue(a)
	}

	return berth.StringValue(b)
}

// scores are by parameter.
func scores(list []Importance) map[string]float64 {
	found := make(map[string]float64)
	for _, one := range list {
		found[one.Parameter] = one.score
	}

	return found
}

func TestImportances_AgreeWithASumByHand(t *testing.T) {
	t.Parallel()

	// n = 20, m = 5. opt: a is 10 of 20 and 5 of the best 5: (1 - 1/2)^2 / (1/2) + (0 - 1/2)^2 / (1/2) = 1.
	// By chance 1/5 * 15/19 = 3/19; the score is 16/19.
	list, sample := importances(rows(20, rising, func(i int) berth.Assignment {
		return berth.Assignment{"opt": text(i >= 10, "a", "b"), "same": berth.IntValue(1)}
	}), maximize)
	require.Len(t, list, 1, "a parameter with one value is left out")
	require.InDelta(t, 16.0/19, list[0].score, 1e-12)
	require.Equal(t, Importance{Parameter: "opt", Share: 1, Trials: 20, score: list[0].score}, list[0])
	require.Equal(t, Sample{Trials: 20}, sample)
}

// A best value in the middle, which a rank correlation does not see.
func TestImportances_SeeTheMiddle(t *testing.T) {
	t.Parallel()

	// 20 values of x in 4 groups of 5, the best 5 all in the second: (1 - 1/4)^2 / (1/4) + 3 * (1/4)^2 / (1/4) = 3.
	// By chance 3/5 * 15/19 = 9/19; the score is 48/19. opt: the best 5 are all b, which 10 of 20 are: 16/19.
	list, _ := importances(rows(20, func(i int) float64 { return -float64(max(i-7, 7-i)) }, func(i int) berth.Assignment {
		return berth.Assignment{"x": berth.IntValue(int64(i)), "opt": text(i >= 10, "a", "b")}
	}), maximize)
	require.InDelta(t, 48.0/19, list[0].score, 1e-12)
	require.InDelta(t, 48.0/64, list[0].Share, 1e-12)
	require.Equal(t, "opt", list[1].Parameter)
}

// grid is a grid of 4 x 10: trials 1 to 10 have lr 1, 11 to 20 lr 2, and so on.
func grid(value func(i int) float64) []Trial {
	return rows(40, value, func(i int) berth.Assignment {
		return berth.Assignment{"lr": berth.FloatValue(float64(i/10 + 1)), "width": berth.IntValue(int64(i % 10))}
	})
}

func TestImportances_AreZero(t *testing.T) {
	t.Parallel()

	const stands = "has about the same values as all: no parameter stands out."

	list, sample := importances(rows(20, rising, func(i int) berth.Assignment { return berth.Assignment{"x": text(i%5 < 3, "a", "b")} }), maximize)
	require.Equal(t, map[string]float64{"x": 0}, scores(list), "the best have the same values as all")
	require.Equal(t, Sample{Trials: 20, Problem: "The best quarter of 20 trials " + stands}, sample)

	for _, goal := range []berth.Objective{maximize, minimize} { // in whatever order a grid was walked
		list, _ = importances(grid(func(int) float64 { return 1 }), goal)
		require.Equal(t, map[string]float64{"lr": 0, "width": 0}, scores(list), "all values are equal")
	}
}

// The number of a trial does not decide among those with the same value.
func TestImportances_OfTies(t *testing.T) {
	t.Parallel()

	// 30 of 40 reach 1, a quarter of the values of lr each but the last: lr = 1, 2 and 3 are equally good. Each of
	// the 30 has a third of a place: 3 * (1/3 - 1/4)^2 / (1/4) + 1/4 = 1/3. By chance 3/100 * (40 * 10/3 - 100)/39
	// = 1/39; the score is 12/39.
	list := grid(func(i int) float64 { return map[bool]float64{true: 1}[i < 30] })
	turned := make([]Trial, 0, len(list))

	for i := range list {
		turned = append(turned, list[len(list)-1-i])
	}

	for _, trials := range [][]Trial{list, turned} {
		found, _ := importances(trials, maximize)
		require.InDelta(t, 12.0/39, scores(found)["lr"], 1e-12)
		require.InDelta(t, 1, found[0].Share, 0)
	}
}

// A parameter that some trials have is scored among those alone.
func TestImportances_OfConditionalParameters(t *testing.T) {
	t.Parallel()

	// momentum exists for sgd alone, and has no effect; opt decides.
	list, _ := importances(rows(400, func(i int) float64 { return float64(1-i%2) + float64(i*7919%101)/1000 }, func(i int) berth.Assignment {
		if i%2 == 1 {
			return berth.Assignment{"opt": berth.StringValue("adam")}
		}

		return berth.Assignment{"opt": berth.StringValue("sgd"), "momentum": berth.FloatValue(float64(i*104729%997) / 997)}
	}), maximize)
	require.Equal(t, "opt", list[0].Parameter)
	require.Less(t, list[1].Share, 0.2)
	require.Equal(t, 200, list[1].Trials)
}

// Trials whose value rises with a parameter that half of them have.
func TestImportances_OfTooFewTrials(t *testing.T) {
	t.Parallel()

	conditional := func(kind bool) func(i int) berth.Assignment {
		return func(i int) berth.Assignment {
			a := berth.Assignment{[]string{"width", "depth"}[i%2]: berth.IntValue(int64(i))}
			if kind {
				a["kind"] = text(i%2 == 1, "a", "b")
			}

			return a
		}
	}
	byTwo := func(i int) float64 { return float64(i / 2) }

	list, sample := importances(rows(30, byTwo, conditional(true)), maximize)
	require.Equal(t, map[string]float64{"kind": 0, "depth": 0, "width": 0}, scores(list))
	require.Equal(t, "The best quarter of 30 trials has about the same values as all: of those that at least 20 trials have, no parameter stands out. Too few have depth, width.",
		sample.Problem)

	list, sample = importances(rows(30, byTwo, conditional(false)), maximize)
	require.Equal(t, []Importance{{Parameter: "depth", Trials: 15}, {Parameter: "width", Trials: 15}}, list)
	require.Empty(t, sample.Problem)

	list, sample = importances(rows(19, byTwo, conditional(true)), maximize)
	require.Empty(t, list)
	require.Equal(t, "This needs 20 trials with a value; there are 19. With fewer, chance decides.", sample.Problem)

	_, sample = importances(rows(1, byTwo, conditional(true)), maximize)
	require.Contains(t, sample.Problem, "there is 1.")

	_, sample = importances(rows(20, byTwo, func(int) berth.Assignment { return nil }), maximize)
	require.Equal(t, "No parameter has two values.", sample.Problem)
}

func TestImportances_TurnWithTheGoal(t *testing.T) {
	t.Parallel()

	trials := rows(20, rising, func(i int) berth.Assignment {
		return berth.Assignment{"opt": text(i < 5, "low", "rest"), "end": text(i >= 15, "high", "rest")}
	})

	for name, goal := range map[string]berth.Objective{"opt": minimize, "end": maximize} {
		list, _ := importances(trials, goal)
		require.Equal(t, name, list[0].Parameter)
	}
}

func TestGrouping(t *testing.T) {
	t.Parallel()

	ints := func(numbers ...int64) (values []berth.Value) {
		for _, n := range numbers {
			values = append(values, berth.IntValue(n))
		}

		return values
	}

	require.Equal(t, []string{"3", "0", "0", "1", "1", "2", "2", "3"}, grouping(ints(8, 1, 2, 3, 4, 5, 6, 7)))
	require.Equal(t, []string{"0", "0", "0", "0", "2", "2", "3", "3"}, grouping(ints(1, 1, 1, 1, 2, 3, 4, 5)), "equal numbers are together")
	require.Equal(t, []string{"32", "64", "32"}, grouping([]berth.Value{berth.IntValue(32), berth.IntValue(64), berth.FloatValue(32)}))
	require.Equal(t, []string{"adam", "true", "7"}, grouping([]berth.Value{berth.StringValue("adam"), berth.BoolValue(true), berth.IntValue(7)}))
}
