package memory

import "math"

// terms are the functions of a fit.
type terms func(x []float64) []float64

// termsFor are the terms that n points can tell apart: a constant and one for each dimension; with the products of two from as many points as there are terms,
// since between corners they give no more than these have; with squares from half as many more.
// nil = too few points.
func termsFor(dimensions, n int) terms {
	pairs := dimensions * (dimensions - 1) / 2
	linear := 1 + dimensions

	switch {
	case 2*n >= 3*(linear+pairs+dimensions):
		return func(x []float64) []float64 { return withSquares(withPairs(x), x) }
	case n >= linear+pairs:
		return withPairs
	case n >= linear:
		return func(x []float64) []float64 { return append([]float64{1}, x...) }
	default:
		return nil
	}
}

func withPairs(x []float64) []float64 {
	out := append([]float64{1}, x...)

	for i := range x {
		for _, other := range x[:i] {
			out = append(out, x[i]*other)
		}
	}

	return out
}

func withSquares(out, x []float64) []float64 {
	for _, v := range x {
		out = append(out, v*v)
	}

	return out
}

// ridge keeps equations that points in one line leave open from having no solution.
const ridge = 1e-9

// leastSquares are the coefficients of the fit of values at points.
func leastSquares(t terms, points [][]float64, values []float64) []float64 {
	n := len(t(points[0]))
	rows := make([][]float64, n) // normal equations, the right side last

	for i := range rows {
		rows[i] = make([]float64, n+1)
		rows[i][i] = ridge
	}

	for k, p := range points {
		f := t(p)
		for i := range f {
			for j := range f {
				rows[i][j] += f[i] * f[j]
			}

			rows[i][n] += f[i] * values[k]
		}
	}

	return solve(rows)
}

// value is that of a fit at x.
func value(t terms, fit, x []float64) (sum float64) {
	for i, f := range t(x) {
		sum += fit[i] * f
	}

	return sum
}

// solve solves linear equations by elimination, the largest pivot first.
func solve(rows [][]float64) []float64 {
	n := len(rows)

	for i := range n {
		best := i
		for k := i + 1; k < n; k++ {
			if math.Abs(rows[k][i]) > math.Abs(rows[best][i]) {
				best = k
			}
		}

		rows[i], rows[best] = rows[best], rows[i]

		for k := i + 1; k < n; k++ {
			share := rows[k][i] / rows[i][i]
			for j := i; j <= n; j++ {
				rows[k][j] -= share * rows[i][j]
			}
		}
	}

	out := make([]float64, n)

	for i := n - 1; i >= 0; i-- {
		out[i] = rows[i][n]
		for j := i + 1; j < n; j++ {
			out[i] -= rows[i][j] * out[j]
		}

		out[i] /= rows[i][i]
	}

	return out
}
