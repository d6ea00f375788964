package insight

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

var (
	maximize = berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}
	minimize = berth.Objective{Metric: "acc", Goal: berth.GoalMinimize}
)

func number(name string, kind berth.ParameterType, low, high float64) berth.Parameter {
	return berth.Parameter{Name: name, Type: kind, Min: &low, Max: &high}
}

func choice(name string, texts ...string) berth.Parameter {
	p := berth.Parameter{Name: name, Type: berth.ParameterCategorical}
	for _, text := range texts {
		p.Values = append(p.Values, berth.StringValue(text))
	}

	return p
}

// rows are n trials with a value and parameters by their index.
func rows(n int, value func(i int) float64, params func(i int) berth.Assignment) []Trial {
	trials := make([]Trial, n)
	for i := range trials {
		trials[i] = Trial{Number: i + 1, Value: new(value(i)), Params: params(i)}
	}

	return trials
}

func rounded(x float64, digits int) float64 {
	return math.Round(x*math.Pow10(digits)) / math.Pow10(digits)
}

// sixty are trials with numbers of each kind, a choice and a parameter with a condition.
func sixty() ([]berth.Parameter, []Trial) {
	parameters := []berth.Parameter{
		number("x", berth.ParameterFloat, 0, 1), number("lr", berth.ParameterFloat, 1e-4, 0.1), number("k", berth.ParameterInt, 1, 9),
		number("n", berth.ParameterInt, 1, 64), choice("c", "a", "b", "c"), number("m", berth.ParameterFloat, 0, 1),
		{Name: "epochs", Type: berth.ParameterFixed, Value: new(berth.IntValue(3))},
	}
	parameters[1].Log, parameters[3].Log, parameters[2].Step = true, true, new(2.0)

	trials := make([]Trial, 60)
	for i := range trials {
		x, lr := float64(i*37%61)/61, 1e-4*math.Pow(1000, float64(i*23%59)/59)
		k, n, c := 1+2*(i*17%5), 1<<(i%7), "abc"[i*i%3:i*i%3+1]
		value := (x-.3)*(x-.3) + .1*math.Pow(math.Log10(lr)+2, 2) + .02*float64(k) + .01*float64(i%7)
		a := berth.Assignment{
			"x": berth.FloatValue(x), "lr": berth.FloatValue(lr), "k": berth.IntValue(int64(k)), "n": berth.IntValue(int64(n)),
			"c": berth.StringValue(c), "epochs": berth.IntValue(3),
		}

		if c == "a" {
			m := float64(i*29%53) / 53
			a["m"] = berth.FloatValue(m)
			value += .2 * m
		} else {
			value += .1
		}

		value = rounded(value, 6)
		trials[i] = Trial{Number: i + 1, Params: a, Value: &value, Results: berth.Results{"acc": value, "nx": float64(n) * x}}
	}

	return parameters, trials
}

// The importances are those of Optuna 5.0.0's default evaluator: for one objective, with
// equal values at the edge of the best, and for two.
func TestImportances_AreOptunas(t *testing.T) {
	t.Parallel()

	parameters, trials := sixty()
	shares := func(objective berth.Objective) map[string]float64 {
		list, sample := importances(trials, parameters, objective)
		require.Equal(t, Sample{Trials: 60}, sample)
		require.True(t, slices.IsSortedFunc(list, func(a, b Importance) int { return int(math.Copysign(1, b.Share-a.Share)) }))

		found := make(map[string]float64)
		for _, one := range list {
			found[one.Parameter] = rounded(one.Share, 9)
		}

		return found
	}

	require.InDeltaMapValues(t, map[string]float64{
		"k": 0.563060969, "x": 0.27768936, "lr": 0.127968063, "m": 0.0198604, "n": 0.01071313, "c": 0.000708077,
	}, shares(minimize), 2e-9)

	two := minimize
	two.Further = []berth.Objective{{Metric: "nx", Goal: berth.GoalMaximize}}
	require.InDeltaMapValues(t, map[string]float64{
		"n": 0.535135452, "k": 0.268915737, "m": 0.171108414, "lr": 0.012792524, "x": 0.009522137, "c": 0.002525736,
	}, shares(two), 2e-9)

	for i := range trials {
		trials[i].Value = new(rounded(*trials[i].Value, 1))
	}

	require.InDeltaMapValues(t, map[string]float64{
		"lr": 0.712097169, "x": 0.225745232, "m": 0.02954336, "k": 0.01829284, "n": 0.010525674, "c": 0.003795724,
	}, shares(maximize), 2e-9)
}

// A sweep that lists its trials plans with one of their choices only.
func TestImportances_OfChoicesOutsideThePlan(t *testing.T) {
	t.Parallel()

	list, _ := importances(rows(40, func(i int) float64 { return float64(i) }, func(i int) berth.Assignment {
		return berth.Assignment{"c": berth.StringValue([]string{"a", "b"}[i/20]), "d": berth.StringValue([]string{"a", "b"}[i%2])}
	}), []berth.Parameter{choice("c", "a"), choice("d", "a")}, maximize)
	require.Equal(t, "c", list[0].Parameter)
	require.Greater(t, list[0].Share, 0.9)
}

func TestImportances_OfTooFewTrials(t *testing.T) {
	t.Parallel()

	parameters := []berth.Parameter{number("width", berth.ParameterInt, 0, 100), number("depth", berth.ParameterInt, 0, 100), choice("kind", "a")}
	halves := func(n int) []Trial { // each parameter in half of the trials
		return rows(n, func(i int) float64 { return float64(i / 2) }, func(i int) berth.Assignment {
			return berth.Assignment{[]string{"width", "depth"}[i%2]: berth.IntValue(int64(i)), "kind": berth.StringValue("a")}
		})
	}

	list, sample := importances(halves(30), parameters, maximize)
	require.Equal(t, []Importance{{Parameter: "depth", Trials: 15}, {Parameter: "width", Trials: 15}}, list, "kind has one value")
	require.Empty(t, sample.Problem)

	list, sample = importances(halves(19), parameters, maximize)
	require.Empty(t, list)
	require.Equal(t, "This needs 20 trials with a value; there are 19. With fewer, chance decides.", sample.Problem)

	_, sample = importances(halves(1), parameters, maximize)
	require.Contains(t, sample.Problem, "there is 1.")

	_, sample = importances(halves(20), parameters[2:], maximize)
	require.Equal(t, "No parameter has two values.", sample.Problem)
}
