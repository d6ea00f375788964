// Package pareto compares trials by several losses, of which less is better. A trial
// dominates another when it is worse in none and better in one.
package pareto

import (
	"cmp"
	"math"
	"slices"
)

// Dominates reports whether a dominates b.
func Dominates(a, b []float64) bool {
	better := false

	for i, x := range a {
		if x > b[i] {
			return false
		}

		better = better || x < b[i]
	}

	return better
}

// Front reports which points no other dominates.
func Front(points [][]float64) []bool {
	front := make([]bool, len(points))

	for i, p := range points {
		front[i] = !slices.ContainsFunc(points, func(other []float64) bool { return Dominates(other, p) })
	}

	return front
}

// Order is the order of points as Optuna 5.0.0's TPE takes the best n: front by front, and of
// the front that is not taken whole the points that add most to the hypervolume. Only the
// first n places are so; what follows is no worse a front than its own.
func Order(points [][]float64, n int) []int {
	var order []int

	rest := make([]int, len(points))
	for i := range rest {
		rest[i] = i
	}

	for len(rest) > 0 {
		among := make([][]float64, len(rest))
		for i, at := range rest {
			among[i] = points[at]
		}

		var next, front []int

		for i, is := range Front(among) {
			if is {
				front = append(front, rest[i])
			} else {
				next = append(next, rest[i])
			}
		}

		if missing := n - len(order); missing > 0 && missing < len(front) {
			front = spread(points, front, missing)
		}

		order, rest = append(order, front...), next
	}

	return order
}

// spread puts n points of a front first, each the one that adds most to the hypervolume of
// those before it. What a point adds only shrinks, so it is computed again only for points
// whose last known part is still the largest.
func spread(points [][]float64, front []int, n int) []int {
	worst := reference(points, front)

	slices.SortStableFunc(front, func(a, b int) int { return slices.Compare(points[a], points[b]) })

	type candidate struct {
		at     int
		adds   float64
		behind int // chosen ones that adds does not know
	}

	candidates := make([]candidate, len(front))
	for i, at := range front {
		candidates[i] = candidate{at: at, adds: Volume([][]float64{points[at]}, worst)}
	}

	var (
		chosen [][]float64
		out    []int
	)

	for len(out) < n {
		best := 0

		for i := range candidates {
			if candidates[i].adds > candidates[best].adds {
				best = i
			}
		}

		if c := &candidates[best]; c.behind < len(chosen) {
			c.adds, c.behind = added(points[c.at], chosen, worst), len(chosen)

			continue
		}

		out, chosen = append(out, candidates[best].at), append(chosen, points[candidates[best].at])
		candidates = slices.Delete(candidates, best, best+1)
	}

	for _, c := range candidates {
		out = append(out, c.at)
	}

	return out
}

// reference is a point that is a tenth worse than the worst of a front, as Optuna takes it.
func reference(points [][]float64, front []int) []float64 {
	worst := slices.Clone(points[front[0]])
	for _, at := range front[1:] {
		for i, x := range points[at] {
			worst[i] = max(worst[i], x)
		}
	}

	for i, x := range worst {
		worst[i] = max(1.1*x, 0.9*x)
		if x == 0 {
			worst[i] = 1e-12
		}
	}

	return worst
}

// added is what a point adds to the hypervolume of others: its own less the part of it that
// they dominate.
func added(p []float64, others [][]float64, worst []float64) float64 {
	within := make([][]float64, len(others))

	for i, other := range others {
		within[i] = make([]float64, len(p))
		for j, x := range p {
			within[i][j] = max(x, other[j])
		}
	}

	keep := Front(within)
	inner := within[:0]

	for i, is := range keep {
		if is {
			inner = append(inner, within[i])
		}
	}

	return Volume([][]float64{p}, worst) - Volume(inner, worst)
}

// Volume is the hypervolume that points dominate up to worst. It grows with the power of
// dimensions less one.
func Volume(points [][]float64, worst []float64) float64 {
	last := len(worst) - 1
	sorted := slices.SortedFunc(slices.Values(points), func(a, b []float64) int { return cmp.Compare(a[last], b[last]) })
	sum, least := 0.0, math.Inf(1)

	for i, p := range sorted {
		end := worst[last]
		if i+1 < len(sorted) {
			end = min(end, sorted[i+1][last])
		}

		area := 1.0 // of what the points up to this one dominate in the other dimensions

		switch {
		case last > 1:
			area = Volume(sorted[:i+1], worst[:last])
		case last == 1:
			least = min(least, p[0])
			area = max(worst[0]-least, 0)
		}

		sum += area * max(end-p[last], 0)
	}

	return sum
}
