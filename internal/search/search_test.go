package search_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
)

func floatRange(name string, low, high float64) berth.Parameter {
	return berth.Parameter{Name: name, Type: berth.ParameterFloat, Min: &low, Max: &high}
}

func intRange(name string, low, high float64) berth.Parameter {
	return berth.Parameter{Name: name, Type: berth.ParameterInt, Min: &low, Max: &high}
}

func choice(name string, values ...string) berth.Parameter {
	p := berth.Parameter{Name: name, Type: berth.ParameterCategorical}
	for _, v := range values {
		p.Values = append(p.Values, berth.StringValue(v))
	}

	return p
}

func derived(name, expr string) berth.Parameter {
	return berth.Parameter{Name: name, Type: berth.ParameterDerived, Expr: expr}
}

func spec(algorithm string, parameters ...berth.Parameter) berth.Spec {
	return berth.Spec{
		Search: berth.SearchSpec{Algorithm: algorithm}, Parameters: parameters, Objective: &berth.Objective{Metric: "loss", Goal: berth.GoalMinimize},
	}
}

// all asks for suggestions in batches until the search ends.
func all(t *testing.T, s berth.Spec, batch int) []berth.Assignment {
	t.Helper()

	searcher, err := search.New(s)
	require.NoError(t, err)

	var out []berth.Assignment

	for range 10_000 {
		more, end, err := searcher.Next(triedOf(out), batch)
		require.NoError(t, err)
		out = append(out, values(more)...)

		if end != search.EndNone {
			return out
		}

		require.NotEmpty(t, more)
	}

	require.Fail(t, "the search does not end")

	return nil
}

func keys(assignments []berth.Assignment) []string {
	out := make([]string, 0, len(assignments))
	for _, a := range assignments {
		out = append(out, a.Key())
	}

	return out
}

// conditional is a space with 2 × 3 points for sgd and 3 for adam; forbid takes
// one.
func conditional(algorithm string) berth.Spec {
	momentum := floatRange("momentum", 0, 0.5)
	momentum.Step = new(0.5)
	momentum.When = map[string]berth.Values{"optimizer": {berth.StringValue("sgd")}}

	s := spec(algorithm, momentum, choice("optimizer", "sgd", "adam"), intRange("batch", 1, 3),
		derived("double", "batch * 2"))
	s.Forbid = []string{`momentum > 0 and double == 6`}

	return s
}

func TestGridOrder(t *testing.T) {
	t.Parallel()

	batch := intRange("batch", 16, 64)
	batch.Step = new(16.0)
	lr := floatRange("lr", 1e-4, 1e-1)
	lr.Log, lr.Count = true, 4

	got := all(t, spec(berth.SearchGrid, lr, batch), 5)
	require.Len(t, got, 16)
	require.Equal(t, `{"batch":16,"lr":0.0001}`, got[0].Key())
	require.Equal(t, `{"batch":32,"lr":0.0001}`, got[1].Key())
	require.Equal(t, `{"batch":16,"lr":0.001}`, got[4].Key())
	require.Equal(t, `{"batch":64,"lr":0.1}`, got[15].Key())
}

func TestGridWithConditions(t *testing.T) {
	t.Parallel()

	got := keys(all(t, conditional(berth.SearchGrid), 2))
	require.Equal(t, []string{
		`{"batch":1,"double":2,"momentum":0.0,"optimizer":"sgd"}`,
		`{"batch":2,"double":4,"momentum":0.0,"optimizer":"sgd"}`,
		`{"batch":3,"double":6,"momentum":0.0,"optimizer":"sgd"}`,
		`{"batch":1,"double":2,"optimizer":"adam"}`,
		`{"batch":2,"double":4,"optimizer":"adam"}`,
		`{"batch":3,"double":6,"optimizer":"adam"}`,
		`{"batch":1,"double":2,"momentum":0.5,"optimizer":"sgd"}`,
		`{"batch":2,"double":4,"momentum":0.5,"optimizer":"sgd"}`,
	}, got)
}

func TestEnqueueComesFirstAndOnce(t *testing.T) {
	t.Parallel()

	for _, algorithm := range []string{berth.SearchGrid, berth.SearchRandom, berth.SearchList} {
		s := conditional(algorithm)
		s.Enqueue = []berth.Assignment{
			{"optimizer": berth.StringValue("adam"), "batch": berth.IntValue(2)},
			{"optimizer": berth.StringValue("sgd"), "batch": berth.IntValue(1), "momentum": berth.FloatValue(0.3)},
			{"optimizer": berth.StringValue("adam"), "batch": berth.IntValue(2)},
			{"optimizer": berth.StringValue("sgd"), "batch": berth.IntValue(3), "momentum": berth.FloatValue(0.5)},
		}

		got := keys(all(t, s, 3))
		require.Equal(t, []string{
			`{"batch":2,"double":4,"optimizer":"adam"}`,
			`{"batch":1,"double":2,"momentum":0.3,"optimizer":"sgd"}`,
		}, got[:2])
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), len(got))

		if algorithm == berth.SearchList {
			require.Len(t, got, 2)
		} else {
			require.Len(t, got, 9)
		}

		n, finite := search.Size(s)
		require.True(t, finite)
		require.EqualValues(t, len(got), n)
	}
}

func TestEnqueueOnAPlainGrid(t *testing.T) {
	t.Parallel()

	s := spec(berth.SearchGrid, intRange("a", 1, 3), intRange("b", 1, 3))
	for _, n := range []int64{1, 2, 3} {
		s.Enqueue = append(s.Enqueue, berth.Assignment{"a": berth.IntValue(n), "b": berth.IntValue(n)})
	}

	for _, batch := range []int{1, 2, 9, 50} {
		got := keys(all(t, s, batch))
		require.Len(t, got, 9)
		require.Equal(t, `{"a":1,"b":2}`, got[3])
		require.Equal(t, `{"a":3,"b":2}`, got[8])
	}
}

func TestNothingToSearchIsOneTrial(t *testing.T) {
	t.Parallel()

	fixed := berth.Parameter{Name: "epochs", Type: berth.ParameterFixed, Value: new(berth.IntValue(5))}
	got := all(t, spec(berth.SearchRandom, derived("warmup", "ceil(0.1 * epochs)"), fixed), 10)
	require.Equal(t, []string{`{"epochs":5,"warmup":1}`}, keys(got))
}

// TestTightForbidKeepsDrawing leaves 1 in 5,000 of the draws.
func TestTightForbidKeepsDrawing(t *testing.T) {
	t.Parallel()

	for name, p := range map[string]berth.Parameter{"infinite": floatRange("x", 0, 1), "finite": intRange("x", 1, 1e9)} {
		s := spec(berth.SearchRandom, p, choice("y", "a", "b"))
		s.Limits.MaxTrials = 30
		s.Forbid = []string{map[string]string{"infinite": "x > 1 / 5000", "finite": "x > 1000000000 / 5000"}[name]}

		first := keys(all(t, s, 50))
		require.Len(t, first, 30, name)
		require.Equal(t, first, keys(all(t, s, 7)), "batches must not matter: %s", name)
	}
}

func TestEndsSayWhy(t *testing.T) {
	t.Parallel()

	limited := spec(berth.SearchRandom, floatRange("x", 0, 1))
	limited.Limits.MaxTrials = 3
	grid := spec(berth.SearchGrid, intRange("x", 1, 3))
	small := spec(berth.SearchRandom, intRange("x", 1, 3))
	more := grid
	more.Limits.MaxTrials = 9
	none := spec(berth.SearchRandom, floatRange("x", 1, 2))
	none.Forbid = []string{"x > 0"}
	large := spec(berth.SearchRandom, intRange("x", 1, 1e15))
	large.Forbid = []string{"x > 0"}

	for _, test := range []struct {
		name    string
		spec    berth.Spec
		made, n int
		end     search.End
		why     string
	}{
		{"max_trials", limited, 3, 0, search.EndLimit, "limits.max_trials is reached"},
		{"grid", grid, 3, 0, search.EndSpace, "every combination was tried"},
		{"grid below max_trials", more, 3, 0, search.EndSpace, "every combination was tried"},
		{"finite", small, 0, 3, search.EndSpace, "every combination was tried"},
		{"infinite", none, 0, 0, search.EndDraws, "no further combination was found in 100,000 draws; forbid leaves too few"},
		{"too large to list", large, 0, 0, search.EndDraws, "no further combination was found in 100,000 draws; forbid leaves too few"},
		{"goes on", limited, 0, 2, search.EndNone, ""},
	} {
		searcher, err := search.New(test.spec)
		require.NoError(t, err)

		limit := 5
		if test.end == search.EndNone {
			limit = test.n
		}

		got, end, err := searcher.Next(berth.Tried{Made: test.made, Last: berth.Assignment{"x": berth.IntValue(3)}}, limit)
		require.NoError(t, err)
		require.Len(t, got, test.n, test.name)
		require.Equal(t, test.end, end, test.name)
		require.Equal(t, test.why, end.String(), test.name)
	}
}

// TestMixedSpacesDoNotRepeat has a number in some trials only, or one of few
// values: the trials without it would come again and again.
func TestMixedSpacesDoNotRepeat(t *testing.T) {
	t.Parallel()

	momentum := floatRange("momentum", 0, 0.99)
	momentum.When = map[string]berth.Values{"optimizer": {berth.StringValue("sgd")}}

	for name, s := range map[string]berth.Spec{
		"conditional": spec(berth.SearchRandom, choice("optimizer", "sgd", "adam", "lion"), momentum),
		"narrow":      spec(berth.SearchRandom, floatRange("x", 1, 1.000000001)),
	} {
		s.Limits.MaxTrials = 100

		got := keys(all(t, s, 8))
		require.Len(t, got, 100, name)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), 100, name)
	}
}

// TestUnrenderedIsNotSuggested: a value that begins with - would be read as an
// option, so the search leaves its trial out as forbid does.
func TestUnrenderedIsNotSuggested(t *testing.T) {
	t.Parallel()

	for _, algorithm := range []string{berth.SearchGrid, berth.SearchRandom, berth.SearchList} {
		s := spec(algorithm, intRange("n", 1, 9), derived("z", "n - 5"))
		s.Command = []string{"train", "{{z}}"}
		s.Enqueue = []berth.Assignment{{"n": berth.IntValue(2)}, {"n": berth.IntValue(7)}}

		got := all(t, s, 2)
		for _, a := range got {
			z, _ := a["z"].Number()
			require.GreaterOrEqual(t, z, 0.0, a.Key())
		}

		want := 5
		if algorithm == berth.SearchList {
			want = 1
		}

		require.Len(t, got, want, algorithm)

		n, finite := search.Size(s)
		require.True(t, finite)
		require.EqualValues(t, want, n)

		s.Command = []string{"train", "--z={{z}}"}
		require.Len(t, all(t, s, 2), map[bool]int{true: 2, false: 9}[algorithm == berth.SearchList])
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()

	child := choice("a", "x")
	child.When = map[string]berth.Values{"b": {berth.StringValue("x")}}

	for want, s := range map[string]berth.Spec{
		"waits for itself or for one that is missing": spec(berth.SearchRandom, child),
		"at most 262144 points":                       spec(berth.SearchGrid, floatRange("lr", 0, 1)),
		"compiling parameter":                         spec(berth.SearchRandom, derived("d", "1 +")),
		"has no values":                               spec(berth.SearchRandom, choice("c")),
		"no value for \"a\"": {
			Search: berth.SearchSpec{Algorithm: berth.SearchList}, Parameters: []berth.Parameter{choice("a", "x")},
			Enqueue: []berth.Assignment{{}},
		},
	} {
		_, err := search.New(s)
		require.ErrorContains(t, err, want)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	}
}

func TestSize(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		spec   berth.Spec
		n      int64
		finite bool
	}{
		{"infinite", spec(berth.SearchRandom, floatRange("lr", 0, 1)), 0, false},
		{"product", spec(berth.SearchRandom, intRange("a", 1, 10), choice("b", "x", "y")), 20, true},
		{"conditions", conditional(berth.SearchRandom), 8, true},
		{"bound", spec(berth.SearchRandom, intRange("a", 1, 1e15), intRange("b", 1, 1e15)), math.MaxInt64, true},
		{"empty", spec(berth.SearchRandom), 1, true},
	}

	for _, test := range tests {
		n, finite := search.Size(test.spec)
		require.Equal(t, test.n, n, test.name)
		require.Equal(t, test.finite, finite, test.name)
	}
}

// TestRandomIsPinned fails when a change would give running sweeps other values.
func TestRandomIsPinned(t *testing.T) {
	t.Parallel()

	lr := floatRange("lr", 1e-5, 0.1)
	lr.Log = true

	s := spec(berth.SearchRandom, lr, intRange("batch", 1, 128), choice("optimizer", "sgd", "adam"))
	s.Search.Seed = 7
	s.Limits.MaxTrials = 3

	require.Equal(t, []string{
		`{"batch":55,"lr":0.000540776738069,"optimizer":"sgd"}`,
		`{"batch":12,"lr":0.000999882479976,"optimizer":"adam"}`,
		`{"batch":88,"lr":0.0763544134728,"optimizer":"sgd"}`,
	}, keys(all(t, s, 3)))
}

// A random search looks up only its draws, for any number of trials.
func TestRandomAsksOnlyForItsDraws(t *testing.T) {
	t.Parallel()

	searcher, err := search.New(spec(berth.SearchRandom, intRange("a", 1, 400), choice("b", "x", "y")))
	require.NoError(t, err)

	history, _, err := searcher.Next(berth.Tried{}, 400) // half of the space
	require.NoError(t, err)

	asked, tried := 0, triedOf(values(history))
	seen := tried.Seen
	tried.Seen = func(keys []string) (map[string]bool, error) {
		require.NotNil(t, keys, "all trials are asked for")

		asked += len(keys)

		return seen(keys)
	}

	got, _, err := searcher.Next(tried, 8)
	require.NoError(t, err)
	for _, key := range keys(values(got)) {
		require.NotContains(t, keys(values(history)), key)
	}

	require.LessOrEqual(t, asked, 8*40)
	require.Greater(t, asked, 8, "some draws were tried")
}

// A grid with a condition goes on behind its last trial: 8 of 100,000 cost as much late as early.
func TestGridGoesOnBehindItsLastTrial(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts allocations of all tests
	s := spec(berth.SearchGrid, intRange("a", 1, 1000), intRange("b", 1, 100))
	s.Forbid = []string{"a * b == 100000"}

	searcher, err := search.New(s)
	require.NoError(t, err)

	tried := berth.Tried{Made: 50_000, Last: berth.Assignment{"a": berth.IntValue(500), "b": berth.IntValue(100)}}

	allocations := testing.AllocsPerRun(3, func() {
		got, _, err := searcher.Next(tried, 8)
		require.NoError(t, err)
		require.Len(t, got, 8)
	})
	require.Less(t, allocations, 5_000.0, "a walk over 50,000 points makes more")
}

// triedOf is the state from which a search continues after all made trials.
func values(suggestions []search.Suggestion) []berth.Assignment {
	out := make([]berth.Assignment, len(suggestions))
	for i, s := range suggestions {
		out[i] = s.Values
	}

	return out
}

func triedOf(history []berth.Assignment) berth.Tried {
	all := make(map[string]bool, len(history))
	tried := berth.Tried{Made: len(history), Seen: func([]string) (map[string]bool, error) { return all, nil }}

	for _, a := range history {
		all[a.Key()] = true
		tried.Last = a
	}

	return tried
}
