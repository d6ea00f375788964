package search_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
)

// earlier are trials of another sweep whose best is at lr = 0.01, with a metric of its own.
func earlier(n int) (trials []berth.Observation) {
	for i := range n {
		lr := 0.0001 * float64(1+i*1000/n)
		trials = append(trials, berth.Observation{
			Number: i + 1, State: berth.TrialSucceeded, Value: new(1000 * (lr - 0.01) * (lr - 0.01)),
			Params: berth.Assignment{"lr": berth.FloatValue(lr), "optimizer": berth.StringValue("adam")},
		})
	}

	return trials
}

var warm = berth.Spec{
	Parameters: []berth.Parameter{
		{Name: "lr", Type: berth.ParameterFloat, Min: new(0.0001), Max: new(0.1)},
		{Name: "optimizer", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue("adam"), berth.StringValue("sgd")}},
	},
	Search:    berth.SearchSpec{Algorithm: berth.SearchGP, Startup: 10},
	Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize},
	Limits:    berth.Limits{MaxTrials: 50},
}

func suggested(t *testing.T, s berth.Spec, tried berth.Tried) search.Suggestion {
	t.Helper()

	searcher, err := search.New(s)
	require.NoError(t, err)

	got, _, err := searcher.Next(tried, 1)
	require.NoError(t, err)
	require.Len(t, got, 1)

	return got[0]
}

// A search that knows earlier sweeps learns from its first trial on, near their best.
func TestPrior_NoStartup(t *testing.T) {
	t.Parallel()

	for _, algorithm := range []string{berth.SearchGP, berth.SearchTPE, berth.SearchAuto} {
		s := warm
		s.Search.Algorithm = algorithm

		got := suggested(t, s, berth.Tried{Prior: [][]berth.Observation{earlier(300), earlier(20)}})
		lr, _ := got.Values["lr"].Number()
		require.InDelta(t, 0.01, lr, 0.015, algorithm)
		require.Equal(t, 70, got.Origin.Prior, "50 of 300, and 20")
		require.Zero(t, got.Origin.Ended)
		require.NotEqual(t, berth.SearchSobol, got.Origin.By)
	}

	require.Equal(t, berth.SearchSobol, suggested(t, warm, berth.Tried{}).Origin.By)
}

// Trials that are not in the new space teach nothing.
func TestPrior_OfAnotherSpace(t *testing.T) {
	t.Parallel()

	value := new(0.5)
	prior := []berth.Observation{
		{Number: 1, State: berth.TrialSucceeded, Value: value, Params: berth.Assignment{"lr": berth.FloatValue(0.5), "optimizer": berth.StringValue("adam")}},
		{Number: 2, State: berth.TrialSucceeded, Value: value, Params: berth.Assignment{"lr": berth.FloatValue(0.05)}},
		{Number: 3, State: berth.TrialSucceeded, Value: value, Params: berth.Assignment{"lr": berth.FloatValue(0.05), "optimizer": berth.StringValue("lion")}},
		{Number: 4, State: berth.TrialSucceeded, Value: value, Params: berth.Assignment{"lr": berth.FloatValue(0.05), "optimizer": berth.StringValue("sgd"), "epochs": berth.IntValue(3)}},
		{Number: 5, State: berth.TrialInfeasible, Params: berth.Assignment{"lr": berth.FloatValue(0.06), "optimizer": berth.StringValue("sgd")}},
	}

	s := warm
	s.Search.Startup = 2
	require.Equal(t, 2, suggested(t, s, berth.Tried{Prior: [][]berth.Observation{prior}}).Origin.Prior)
}

// The sweep's own trials count beside the earlier ones, whatever their metric's size, and an
// earlier value may be tried again.
func TestPrior_OwnTrialsCount(t *testing.T) {
	t.Parallel()

	var own []berth.Observation

	for i := range 30 { // the best here is at lr = 0.08
		lr := 0.003 * float64(1+i)
		own = append(own, berth.Observation{
			Number: i + 1, State: berth.TrialSucceeded, Value: new(-1e-6 * (lr - 0.08) * (lr - 0.08)),
			Params: berth.Assignment{"lr": berth.FloatValue(lr), "optimizer": berth.StringValue("sgd")},
		})
	}

	tried := pastOf(own)
	tried.Prior = [][]berth.Observation{earlier(10)}

	got := suggested(t, warm, tried)
	require.Equal(t, berth.Origin{By: berth.SearchGP, Ended: 30, Prior: 10}, got.Origin)

	grid := warm
	grid.Parameters = []berth.Parameter{{Name: "optimizer", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue("adam")}}}
	grid.Search.Startup = 1
	got = suggested(t, grid, berth.Tried{Prior: [][]berth.Observation{earlier(3)}})
	require.Equal(t, berth.Assignment{"optimizer": berth.StringValue("adam")}, got.Values)
}
