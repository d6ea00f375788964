package pareto_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth/internal/search/pareto"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// testdata/optuna.json has what _split_trials and compute_hypervolume of Optuna 5.0.0 make of
// points by lot. Of points with many equals, where any may be taken, it has the volume alone.
func TestOrder_TakesThePointsThatOptunaTakes(t *testing.T) {
	t.Parallel()

	var cases []struct {
		Points [][]float64   `json:"points"`
		Below  map[int][]int `json:"below"`
		Worst  []float64     `json:"worst"`
		Volume float64       `json:"volume"`
	}

	text, err := os.ReadFile("testdata/optuna.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))

	for _, c := range cases {
		require.InEpsilon(t, c.Volume, pareto.Volume(c.Points, c.Worst), 1e-9)

		for n, want := range c.Below {
			got := pareto.Order(c.Points, n)
			require.Len(t, got, len(c.Points))
			require.ElementsMatch(t, want, got[:n], "%d of %v", n, c.Points)
		}
	}
}

func TestOrder_IsFrontByFront(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-3, 3), 3, 3), 1, 40).Draw(t, "points")
		order := pareto.Order(points, rapid.IntRange(1, len(points)).Draw(t, "n"))
		require.ElementsMatch(t, slices.Collect(func(yield func(int) bool) {
			for i := range points {
				if !yield(i) {
					return
				}
			}
		}), order)

		for i, earlier := range order {
			for _, later := range order[i:] {
				require.False(t, pareto.Dominates(points[later], points[earlier]))
			}
		}
	})
}

func BenchmarkOrder(b *testing.B) {
	for _, objectives := range []int{2, 4} {
		for _, n := range []int{100, 1000} {
			random := rand.New(rand.NewPCG(1, 2))
			points := make([][]float64, n)

			for i := range points {
				for range objectives {
					points[i] = append(points[i], random.NormFloat64())
				}
			}

			b.Run(fmt.Sprintf("%d objectives, %d trials", objectives, n), func(b *testing.B) {
				for b.Loop() {
					pareto.Order(points, n/10)
				}
			})
		}
	}
}
