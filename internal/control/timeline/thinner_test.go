package timeline_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// For any curve Thinner keeps at most the given number of points, all of them its own
// and in order, its ends and its extremes among them, and in each range of steps the
// first, the last, the lowest and the highest, as a search finds them.
func TestThinner(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfNDistinct(rapid.Int64Range(-1000, 1000), 1, 300, rapid.ID).Draw(t, "steps")
		if rapid.Bool().Draw(t, "huge") {
			steps = append(steps, math.MinInt64, math.MaxInt64)
		}

		slices.Sort(steps)

		most := rapid.IntRange(timeline.LeastPoints, 64).Draw(t, "most")
		low, high := steps[0], steps[len(steps)-1]
		thinner := timeline.NewThinner(low, high, most)

		var all []berth.CurvePoint

		for _, step := range steps {
			p := berth.CurvePoint{Step: step, Value: rapid.Float64Range(-3, 3).Draw(t, "value")}
			all = append(all, p)
			thinner.Add(p)
		}

		got := thinner.Points()
		require.Equal(t, len(all), thinner.Total())
		require.LessOrEqual(t, len(got), most)

		if len(all) <= most {
			require.Equal(t, all, got)

			return
		}

		require.True(t, slices.IsSortedFunc(got, func(a, b berth.CurvePoint) int { return int(min(max(float64(a.Step)-float64(b.Step), -1), 1)) }))
		require.Equal(t, all[0], got[0])
		require.Equal(t, all[len(all)-1], got[len(got)-1])

		ranges := make(map[int][]berth.CurvePoint)
		width := (float64(high) - float64(low) + 1) / float64(most/timeline.LeastPoints)

		for _, p := range all {
			i := min(int((float64(p.Step)-float64(low))/width), most/timeline.LeastPoints-1)
			ranges[i] = append(ranges[i], p)
		}

		for _, points := range ranges {
			lowest, highest := points[0].Value, points[0].Value
			for _, p := range points {
				lowest, highest = min(lowest, p.Value), max(highest, p.Value)
			}

			require.True(t, slices.ContainsFunc(got, func(p berth.CurvePoint) bool { return p.Value == lowest }))
			require.True(t, slices.ContainsFunc(got, func(p berth.CurvePoint) bool { return p.Value == highest }))
		}

		for _, p := range got {
			require.Contains(t, all, p)
		}
	})
}
