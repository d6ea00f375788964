package search_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/pareto"
)

func number(t testing.TB, a berth.Assignment, name string) float64 {
	t.Helper()

	x, is := a[name].Number()
	require.True(t, is)

	return x
}

// With two objectives the search fills the front between them. The best trades here are at y =
// z = 0 with x from 0 to 1; they dominate 3.83 of the 4 between nothing and 2 of both losses.
func TestModels_FillTheFront(t *testing.T) {
	t.Parallel()

	volume := func(algorithm string, seed int64) float64 {
		s := spec(algorithm, floatRange("x", -2, 2), floatRange("y", -2, 2), floatRange("z", -2, 2))
		s.Search.Startup, s.Search.Seed = 10, seed
		s.Objective = &berth.Objective{
			Metric: "near0", Goal: berth.GoalMaximize, Further: []berth.Objective{{Metric: "near1", Goal: berth.GoalMinimize}},
		}

		var losses [][]float64

		studyResults(t, s, 100, 4, func(a berth.Assignment) (*float64, berth.Results) {
			x, y, z := number(t, a, "x"), number(t, a, "y"), number(t, a, "z")
			loss := []float64{x*x + y*y + z*z, (x-1)*(x-1) + y*y + z*z}
			losses = append(losses, loss)

			return new(-loss[0]), berth.Results{"near0": -loss[0], "near1": loss[1]}
		})

		inside := slices.DeleteFunc(losses, func(l []float64) bool { return l[0] > 2 || l[1] > 2 })

		return pareto.Volume(inside, []float64{2, 2})
	}

	median := func(algorithm string) float64 {
		volumes := make([]float64, 7)
		for seed := range volumes {
			volumes[seed] = volume(algorithm, int64(seed))
		}

		slices.Sort(volumes)

		return volumes[3]
	}

	random := median(berth.SearchRandom)
	for _, algorithm := range []string{berth.SearchTPE, berth.SearchAuto} {
		require.Greater(t, median(algorithm), random+0.3, algorithm)
	}
}

// A broken constraint teaches by how much it is broken, so the search comes to its edge: the
// best allowed loss is .09, at x = .5.
func TestModels_KeepConstraints(t *testing.T) {
	t.Parallel()

	for algorithm, near := range map[string]float64{berth.SearchTPE: 0.03, berth.SearchGP: 0.005} {
		s := spec(algorithm, floatRange("x", 0, 1), floatRange("y", 0, 1))
		s.Search.Startup = 10
		s.Constraints = []berth.Constraint{{Metric: "ms", Max: new(5.0)}}
		best, kept := 1.0, 0

		past := studyResults(t, s, 60, 4, func(a berth.Assignment) (*float64, berth.Results) {
			x, y := number(t, a, "x"), number(t, a, "y")
			loss := (x-0.8)*(x-0.8) + (y-0.5)*(y-0.5)
			results := berth.Results{"loss": loss, "ms": 10 * x}

			if x > 0.5 {
				return nil, results
			}

			best = min(best, loss)
			kept++

			return &loss, results
		})
		require.Len(t, past, 60)
		require.InDelta(t, 0.09, best, near, algorithm)
		require.Greater(t, kept, 30, algorithm)
	}
}

// With nothing allowed yet, what is broken least is best.
func TestModels_FindWhatIsAllowed(t *testing.T) {
	t.Parallel()

	for _, algorithm := range []string{berth.SearchTPE, berth.SearchGP} {
		s := spec(algorithm, floatRange("x", 0, 1), floatRange("y", 0, 1), floatRange("z", 0, 1))
		s.Search.Startup = 10
		s.Constraints = []berth.Constraint{{Metric: "ms", Max: new(0.0)}}
		allowed := 0

		studyResults(t, s, 60, 4, func(a berth.Assignment) (*float64, berth.Results) {
			far := 0.0
			for _, name := range []string{"x", "y", "z"} {
				far += max(number(t, a, name)-0.1, 0)
			}

			if far == 0 {
				allowed++

				return new(1.0), berth.Results{"loss": 1, "ms": 0}
			}

			return nil, berth.Results{"loss": 1, "ms": far}
		})
		require.Greater(t, allowed, 3, "%s: one in a thousand by lot", algorithm)
	}
}
