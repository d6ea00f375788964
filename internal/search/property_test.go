package search_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// parameter draws a searched parameter; a finite one has few points.
func parameter(t *rapid.T, name string, finite bool) berth.Parameter {
	low := float64(rapid.IntRange(1, 5).Draw(t, name+" min"))
	high := low + float64(rapid.IntRange(1, 4).Draw(t, name+" span"))

	switch kind := rapid.IntRange(0, 3).Draw(t, name+" kind"); {
	case kind == 0:
		return choice(name, []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, name+" choices")]...)
	case kind == 1 || finite && kind == 2:
		p := intRange(name, low, high)
		p.Log = rapid.Bool().Draw(t, name+" log")

		return p
	case finite:
		p := floatRange(name, low, high)
		p.Step = new(0.5)

		return p
	default:
		p := floatRange(name, low, high)
		p.Log = rapid.Bool().Draw(t, name+" log")

		return p
	}
}

// drawSpec draws a space with conditions, a derived value and a forbid clause.
func drawSpec(t *rapid.T, algorithm string, finite bool) berth.Spec {
	s := spec(algorithm, choice("parent", "on", "off"), intRange("n", 1, 3), derived("d", "n * 2"))

	for i := range rapid.IntRange(0, 2).Draw(t, "parameters") {
		p := parameter(t, fmt.Sprint("p", i), finite)
		if rapid.Bool().Draw(t, "conditional") {
			p.When = map[string]berth.Values{"parent": {berth.StringValue("on")}}
		}

		s.Parameters = append([]berth.Parameter{p}, s.Parameters...)
	}

	if rapid.Bool().Draw(t, "forbid") {
		s.Forbid = []string{`d == 4 and parent == "off"`}
	}

	s.Search.Seed = rapid.Int64Range(-5, 5).Draw(t, "seed")

	return s
}

// checkValid fails unless a obeys the spec.
func checkValid(t *rapid.T, s berth.Spec, a berth.Assignment) {
	for _, p := range s.Parameters {
		v, has := a[p.Name]
		require.Equal(t, p.Active(a), has, "%s in %s", p.Name, a.Key())

		if !has || p.Type == berth.ParameterDerived {
			continue
		}

		if p.Type == berth.ParameterCategorical {
			require.Contains(t, p.Values, v)

			continue
		}

		number, isNumber := v.Number()
		require.True(t, isNumber)
		require.GreaterOrEqual(t, number, *p.Min)
		require.LessOrEqual(t, number, *p.Max)

		if p.Step != nil {
			steps := (number - *p.Min) / *p.Step
			require.InDelta(t, math.Round(steps), steps, 1e-9)
		}

		_, whole := v.Any().(int64)
		require.Equal(t, p.Type == berth.ParameterInt, whole)
	}

	n, _ := a["n"].Number()
	d, _ := a["d"].Number()
	require.InDelta(t, 2*n, d, 0)

	if len(s.Forbid) > 0 {
		require.False(t, d == 4 && a["parent"] == berth.StringValue("off"), "forbidden: %s", a.Key())
	}
}

func TestSuggestionsAreValid(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t, berth.SearchRandom, false)
		searcher, err := search.New(s)
		require.NoError(t, err)

		suggestions, _, err := searcher.Next(berth.Tried{}, 20)
		require.NoError(t, err)
		require.NotEmpty(t, suggestions)

		for _, a := range values(suggestions) {
			checkValid(t, s, a)
		}
	})
}

// run makes a whole finite search in batches of drawn sizes.
func run(t *rapid.T, s berth.Spec, name string) []string {
	var history []berth.Assignment

	for {
		searcher, err := search.New(s) // as after a restart
		require.NoError(t, err)

		batch := rapid.IntRange(1, 40).Draw(t, name)
		more, end, err := searcher.Next(triedOf(history), batch)
		require.NoError(t, err)
		history = append(history, values(more)...)

		for _, a := range values(more) {
			checkValid(t, s, a)
		}

		if end != search.EndNone {
			return keys(history)
		}

		require.Len(t, more, batch)
	}
}

func TestFiniteSpacesAreTriedWhole(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t, rapid.SampledFrom([]string{berth.SearchGrid, berth.SearchRandom}).Draw(t, "algorithm"), true)

		first := run(t, s, "batch")
		require.Equal(t, first, run(t, s, "other batch"), "batches must not matter")

		distinct := map[string]bool{}
		for _, key := range first {
			distinct[key] = true
		}

		n, finite := search.Size(s)
		require.True(t, finite)
		require.Len(t, distinct, len(first))
		require.Len(t, first, int(n))
	})
}

func TestRandomAndGridFindTheSame(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t, berth.SearchGrid, true)
		grid := run(t, s, "batch")

		s.Search.Algorithm = berth.SearchRandom
		require.ElementsMatch(t, grid, run(t, s, "batch"))
	})
}

func TestDistributions(t *testing.T) {
	t.Parallel()

	const trials = 20_000

	lr := floatRange("lr", 1e-4, 1)
	lr.Log = true
	width := intRange("width", 1, 1000)
	width.Log = true
	optimizer := choice("optimizer", "sgd", "adam")
	optimizer.Probabilities = []float64{0.3, 0.7}

	s := spec(berth.SearchRandom, lr, width, optimizer, floatRange("x", -1, 3))
	searcher, err := search.New(s)
	require.NoError(t, err)

	suggestions, end, err := searcher.Next(berth.Tried{}, trials)
	require.NoError(t, err)
	require.Equal(t, search.EndNone, end)

	var small, narrow, sgd, negative float64

	for _, a := range values(suggestions) {
		v, _ := a["lr"].Number()
		w, _ := a["width"].Number()
		x, _ := a["x"].Number()

		small += count(v < 1e-2)
		narrow += count(w <= 31)
		sgd += count(a["optimizer"] == berth.StringValue("sgd"))
		negative += count(x < 0)
	}

	require.InDelta(t, 0.5, small/trials, 0.02)
	require.InDelta(t, (math.Log(31.5)-math.Log(0.5))/(math.Log(1000.5)-math.Log(0.5)), narrow/trials, 0.02)
	require.InDelta(t, 0.3, sgd/trials, 0.02)
	require.InDelta(t, 0.25, negative/trials, 0.02)
}

func count(yes bool) float64 {
	if yes {
		return 1
	}

	return 0
}
