package search_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/search/functions"
)

// study runs a search on a function: q trials are open at once, and end in the order in which
// they began.
func study(t testing.TB, s berth.Spec, trials, q int, f func(berth.Assignment) float64) []berth.Observation {
	t.Helper()

	return studyResults(t, s, trials, q, func(a berth.Assignment) (value *float64, results berth.Results) { return new(f(a)), nil })
}

// studyResults is study for trials with further results.
func studyResults(
	t testing.TB, s berth.Spec, trials, q int, f func(berth.Assignment) (*float64, berth.Results),
) []berth.Observation {
	t.Helper()

	searcher, err := search.New(s)
	require.NoError(t, err)

	var past []berth.Observation

	for len(past) < trials {
		for i := range past {
			if i+q <= len(past) && !past[i].State.Terminal() {
				past[i].State = berth.TrialSucceeded
				past[i].Value, past[i].Results = f(past[i].Params)
			}
		}

		more, end, err := searcher.Next(pastOf(past), 1)
		require.NoError(t, err)

		if end == search.EndSpace {
			break
		}

		past = append(past, berth.Observation{Number: len(past) + 1, Params: more[0].Values, State: berth.TrialRunning})
	}

	return past
}

func pastOf(past []berth.Observation) berth.Tried {
	history := make([]berth.Assignment, len(past))
	for i, o := range past {
		history[i] = o.Params
	}

	tried := triedOf(history)
	tried.Past = past

	return tried
}

// problem is one of the bench's functions with a search.
func problem(name, algorithm string, seed int64) (berth.Spec, func(berth.Assignment) float64) {
	all := functions.All()
	f := all[slices.IndexFunc(all, func(f functions.Function) bool { return f.Name == name })]

	return berth.Spec{
		Parameters: f.Parameters, Objective: &berth.Objective{Metric: "loss", Goal: berth.GoalMinimize},
		Search: berth.SearchSpec{Algorithm: algorithm, Startup: 10, Seed: seed},
	}, f.Loss
}

// The medians of 100 trials by TPE lie where those of Optuna 5.0.0 do: .106 for hartmann6 and
// .006 for mixed4 one at a time, where random search has 1.25 and .227. A Gaussian process
// finds better ones.
func TestModels_FindGoodValues(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		algorithm, problem string
		q, seeds           int
		most               float64
	}{
		{berth.SearchTPE, "hartmann6", 1, 11, .3},
		{berth.SearchTPE, "hartmann6", 8, 11, .5},
		{berth.SearchTPE, "mixed4", 1, 11, .02},
		{berth.SearchTPE, "mixed4", 8, 11, .05},
		{berth.SearchAuto, "hartmann6", 24, 3, .25},
		{berth.SearchGP, "mixed4", 8, 3, .005},
	} {
		var best []float64

		for seed := range test.seeds {
			s, f := problem(test.problem, test.algorithm, int64(seed))
			least := slices.MinFunc(study(t, s, 100, test.q, f), func(a, b berth.Observation) int {
				return cmp.Compare(f(a.Params), f(b.Params))
			})
			best = append(best, f(least.Params))
		}

		slices.Sort(best)
		t.Logf("%s of %s, %d at once: %.4f", test.algorithm, test.problem, test.q, best)
		require.Less(t, best[len(best)/2], test.most, "%s of %s, %d at once", test.algorithm, test.problem, test.q)
	}
}

// Whatever a space is like, no assignment comes twice, each is valid, and a finite space is
// tried whole.
func TestModels_TryAFiniteSpaceWhole(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t, rapid.SampledFrom([]string{berth.SearchTPE, berth.SearchGP}).Draw(t, "algorithm"), true)
		s.Search.Startup = rapid.IntRange(1, 5).Draw(t, "startup")
		s.Objective = &berth.Objective{Metric: "m", Goal: berth.GoalMaximize}
		searcher, err := search.New(s)
		require.NoError(t, err)

		var (
			past []berth.Observation
			end  search.End
			more []search.Suggestion
		)

		for end == search.EndNone {
			batch := rapid.IntRange(1, 8).Draw(t, "batch")
			more, end, err = searcher.Next(pastOf(past), batch)
			require.NoError(t, err)

			for _, suggestion := range more {
				checkValid(t, s, suggestion.Values)

				o := berth.Observation{Number: len(past) + 1, Params: suggestion.Values, State: berth.TrialRunning}
				past = append(past, o)
			}

			for i := range past { // some end, and some of these badly
				switch rapid.IntRange(0, 4).Draw(t, "end") {
				case 0:
					past[i].State = berth.TrialInfeasible
				case 1:
					past[i].State, past[i].Kind = berth.TrialFailed, berth.FailureUserError
				case 2, 3:
					past[i].State, past[i].Value = berth.TrialSucceeded, new(float64(i%7))
				}
			}
		}

		distinct := make(map[string]bool)
		for _, o := range past {
			distinct[o.Params.Key()] = true
		}

		n, finite := search.Size(s)
		require.True(t, finite)
		require.Len(t, distinct, len(past))
		require.Len(t, past, int(n))
	})
}

// A suggestion depends on the stored trials alone: in batches or one by one, now or later.
func TestModels_AreDerivedFromTheirHistory(t *testing.T) {
	t.Parallel()

	for _, algorithm := range []string{berth.SearchTPE, berth.SearchGP} {
		s, f := problem("mixed4", algorithm, 3)
		past := study(t, s, 40, 5, f)
		searcher, err := search.New(s)
		require.NoError(t, err)

		for n := range past {
			known := slices.Clone(past[:n])
			for i := range known { // as study did
				if i+5 > n {
					known[i].State, known[i].Value = berth.TrialRunning, nil
				}
			}

			again, _, err := searcher.Next(pastOf(known), 2)
			require.NoError(t, err)
			require.Equal(t, past[n].Params.Key(), again[0].Values.Key(), "trial %d of %s", n+1, algorithm)
		}
	}
}

// chosenBy returns what chooses the next trial when some trials are made and the first of them have ended.
func chosenBy(t *testing.T, s berth.Spec, made, ended int) string {
	t.Helper()

	searcher, err := search.New(s)
	require.NoError(t, err)

	past := make([]berth.Observation, made)
	for i := range past {
		past[i] = berth.Observation{
			Number: i + 1, State: berth.TrialRunning,
			Params: berth.Assignment{"x": berth.FloatValue(float64(i) / 1000), "o": berth.StringValue("a")},
		}
		if i < ended {
			past[i].State, past[i].Value = berth.TrialSucceeded, new(float64(i))
		}
	}

	next, _, err := searcher.Next(pastOf(past), 1)
	require.NoError(t, err)
	require.Equal(t, ended, next[0].Origin.Ended)

	return next[0].Origin.By
}

// auto takes TPE where a Gaussian process is slow or was not measured.
func TestAuto_ChoosesItsModel(t *testing.T) {
	t.Parallel()

	s := spec(berth.SearchAuto, floatRange("x", 0, 1), choice("o", "a", "b"))
	s.Search.Startup = 10
	require.Equal(t, berth.SearchSobol, chosenBy(t, s, 9, 9))
	require.Equal(t, berth.SearchGP, chosenBy(t, s, 10, 10))
	require.Equal(t, berth.SearchTPE, chosenBy(t, s, 251, 251))

	s.Parameters = append(s.Parameters, floatRange("m", 0, 1))
	s.Parameters[2].When = map[string]berth.Values{"o": {berth.StringValue("b")}}
	require.Equal(t, berth.SearchGP, chosenBy(t, s, 10, 10), "with a condition")
}

// A search learns once its startup trials are made and half of them have ended: with many at once
// more trials are made before their ends tell anything.
func TestAuto_LearnsFromHalfOfStartup(t *testing.T) {
	t.Parallel()

	s := spec(berth.SearchAuto, floatRange("x", 0, 1), choice("o", "a", "b"))
	s.Search.Startup = 10

	for _, test := range []struct {
		made, ended int
		by          string
	}{
		{9, 9, berth.SearchSobol}, {10, 4, berth.SearchSobol}, {30, 4, berth.SearchSobol}, {10, 5, berth.SearchGP}, {30, 5, berth.SearchGP},
	} {
		require.Equal(t, test.by, chosenBy(t, s, test.made, test.ended), "%d made, %d ended", test.made, test.ended)
	}
}

// A search that learns begins at the corners of the marked numbers, the largest first: their
// shapes predict the memory of all between.
func TestModels_BeginAtCorners(t *testing.T) {
	t.Parallel()

	s := berth.Spec{
		Parameters: []berth.Parameter{
			{Name: "lr", Type: berth.ParameterFloat, Min: new(1e-4), Max: new(0.1), Log: true},
			{Name: "batch", Type: berth.ParameterInt, Min: new(16.0), Max: new(128.0), Step: new(16.0), Memory: new(true)},
			{Name: "width", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(64), berth.IntValue(32), berth.IntValue(256)}, Memory: new(true)},
			{Name: "optimizer", Type: berth.ParameterCategorical, Values: berth.Values{berth.StringValue("adam"), berth.StringValue("sgd")}, Memory: new(true)},
		},
		Search:    berth.SearchSpec{Algorithm: berth.SearchAuto, Startup: 10},
		Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize},
		Limits:    berth.Limits{MaxTrials: 20},
	}

	corners := func(s berth.Spec) (all [][2]string) {
		for _, o := range study(t, s, 5, 2, func(berth.Assignment) float64 { return 0 }) {
			all = append(all, [2]string{o.Params["batch"].String(), o.Params["width"].String()})
		}

		return all
	}

	got := corners(s)
	require.Equal(t, [][2]string{{"128", "256"}, {"16", "32"}, {"128", "32"}, {"16", "256"}}, got[:4])

	s.Search.Algorithm = berth.SearchSobol
	require.NotEqual(t, got[:4], corners(s)[:4], "a search that does not learn is spread evenly")

	s.Search.Algorithm = berth.SearchAuto
	s.Parameters[1].Memory, s.Parameters[2].Memory = nil, nil
	require.NotEqual(t, got[:4], corners(s)[:4], "nothing is marked")
}
