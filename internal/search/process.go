package search

import (
	"math"
	"slices"
)

// process is a Gaussian process over coordinates on the unit cube, of losses as normal
// scores: Matern 5/2 with a length for each parameter. Choices, and parameters that only one
// of two points has, are one apart or equal.
type process struct {
	apart  []bool      // by parameter: a choice
	points [][]float64 // NaN = inactive
	scores []float64   // of the points
	theta  theta
	factor factor // of the covariance of the points
}

// theta are the parameters of the covariance, as logarithms.
type theta struct {
	weights []float64 // inverse squared lengths, by parameter
	scale   float64   // variance of the process
	noise   float64   // variance of a measurement
}

const (
	leastNoise = 1e-6 // variance that keeps factors of equal points positive (Optuna's minimum)
	fitSteps   = 50
	fitRate    = 0.15 // of Adam
)

func newTheta(parameters int) theta {
	return theta{weights: make([]float64, parameters), noise: math.Log(0.01)}
}

// difference is a squared distance in one parameter.
func (g *process) difference(parameter int, a, b float64) float64 {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) || math.IsNaN(b):
		return 1
	case g.apart[parameter]:
		if a == b {
			return 0
		}

		return 1
	default:
		return (a - b) * (a - b)
	}
}

// matern is the correlation at a squared distance, and its derivative by that.
func matern(square float64) (correlation, slope float64) {
	s := math.Sqrt(5 * square)
	e := math.Exp(-s)

	return e * (1 + s + 5.0/3*square), -5.0 / 6 * (1 + s) * e
}

// covariances are those of a point with the first n points, into out.
func (g *process) covariances(at, out, weights []float64) {
	scale := math.Exp(g.theta.scale)

	for i := range out {
		square := 0.0
		for j, w := range weights {
			square += w * g.difference(j, at[j], g.points[i][j])
		}

		correlation, _ := matern(square)
		out[i] = scale * correlation
	}
}

func (g *process) weights() []float64 {
	weights := make([]float64, len(g.theta.weights))
	for j, w := range g.theta.weights {
		weights[j] = math.Exp(w)
	}

	return weights
}

// noise is the variance of a measurement.
func (g *process) noise() float64 { return math.Exp(g.theta.noise) + leastNoise }

// add adds a point to the factor; g.points has it already at the factor's end.
func (g *process) add(weights []float64) {
	n := len(g.factor)
	row := make([]float64, n)
	g.covariances(g.points[n], row, weights)
	g.factor = g.factor.add(row, math.Exp(g.theta.scale)+g.noise())
}

// factor is a lower triangle L whose L L^T is a covariance, by rows.
type factor [][]float64

// add appends a row: covariances with the earlier points, and the own variance.
func (l factor) add(row []float64, own float64) factor {
	l.solve(row)

	for _, x := range row {
		own -= x * x
	}

	return append(l, append(row, math.Sqrt(max(own, 1e-9))))
}

// solve makes L^-1 b of b, in place.
func (l factor) solve(b []float64) {
	for i, row := range l[:len(b)] {
		x := b[i]
		for k, r := range row[:i] {
			x -= r * b[k]
		}

		b[i] = x / row[i]
	}
}

// solveUp makes L^-T b of b, in place.
func (l factor) solveUp(b []float64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] /= l[i][i]

		for k, r := range l[i][:i] {
			b[k] -= r * b[i]
		}
	}
}

// fit finds the most probable theta of the points by Adam, from the first one, with the
// priors of Optuna 5.0.0's GPSampler (optuna/_gp/prior.py). It is a pure function of points
// and scores.
func (g *process) fit() {
	d := len(g.theta.weights)
	flat := append(slices.Clone(g.theta.weights), g.theta.scale, g.theta.noise)
	best, least := slices.Clone(flat), math.Inf(1)
	slope, mean, square := make([]float64, d+2), make([]float64, d+2), make([]float64, d+2)
	differences := g.differences()

	for step := 1; step <= fitSteps; step++ {
		loss := g.posterior(flat, slope, differences)
		if loss < least {
			least = loss
			copy(best, flat)
		}

		if math.IsInf(loss, 0) || math.IsNaN(loss) {
			break
		}

		for i, s := range slope {
			mean[i] = 0.9*mean[i] + 0.1*s
			square[i] = 0.99*square[i] + 0.01*s*s
			at := mean[i] / (1 - math.Pow(0.9, float64(step)))
			flat[i] -= fitRate * at / (math.Sqrt(square[i]/(1-math.Pow(0.99, float64(step)))) + 1e-8)
			flat[i] = max(min(flat[i], 8), -10)
		}
	}

	g.theta = theta{best[:d], best[d], best[d+1]}
}

// differences are those of all pairs, by parameter and pair.
func (g *process) differences() [][]float64 {
	n := len(g.points)
	out := make([][]float64, len(g.apart))

	for j := range out {
		out[j] = make([]float64, 0, n*(n+1)/2)
		for i := range n {
			for k := range i + 1 {
				out[j] = append(out[j], g.difference(j, g.points[i][j], g.points[k][j]))
			}
		}
	}

	return out
}

// posterior is the negative logarithm of a theta's probability, but for a constant, and its
// slope by each of theta's logarithms.
func (g *process) posterior(flat, slope []float64, differences [][]float64) float64 {
	n, d := len(g.points), len(flat)-2
	weights := make([]float64, d)

	for j := range weights {
		weights[j] = math.Exp(flat[j])
	}

	scale, noise := math.Exp(flat[d]), math.Exp(flat[d+1])
	slopes := make([]float64, n*(n+1)/2) // of the correlations by the squared distance
	covariance := make([]float64, len(slopes))
	l := make(factor, 0, n)

	for i, pair := 0, 0; i < n; i++ {
		row := make([]float64, i, i+1)

		for k := range i + 1 {
			square := 0.0
			for j, w := range weights {
				square += w * differences[j][pair]
			}

			correlation, slope := matern(square)
			covariance[pair], slopes[pair] = scale*correlation, scale*slope

			if k < i {
				row[k] = covariance[pair]
			}

			pair++
		}

		l = l.add(row, scale+noise+leastNoise)
	}

	solved := slices.Clone(g.scores)
	l.solve(solved)

	loss := 0.0
	for i, x := range solved {
		loss += x*x/2 + math.Log(l[i][i])
	}

	l.solveUp(solved)

	inverse := l.inverse()

	clear(slope)

	for i, pair := 0, 0; i < n; i++ {
		for k := range i + 1 {
			q := inverse[i][k] - solved[i]*solved[k]
			if i == k {
				q /= 2
				slope[d+1] += q * noise
			}

			slope[d] += q * covariance[pair]

			for j, w := range weights {
				slope[j] += q * slopes[pair] * differences[j][pair] * w
			}

			pair++
		}
	}

	for j, w := range weights {
		loss += 0.1/w + 0.1*w
		slope[j] += -0.1/w + 0.1*w
	}

	loss += -math.Log(scale) + scale - 0.1*math.Log(noise) + 30*noise
	slope[d] += scale - 1
	slope[d+1] += 30*noise - 0.1

	return loss
}

// inverse is the lower triangle of (L L^T)^-1.
func (l factor) inverse() [][]float64 {
	n := len(l)
	lower := make([][]float64, n) // L^-1 by columns: lower[c][i-c]

	for c := range n {
		column := make([]float64, n-c)
		column[0] = 1 / l[c][c]

		for i := c + 1; i < n; i++ {
			sum := 0.0
			for k, x := range column[:i-c] {
				sum += l[i][c+k] * x
			}

			column[i-c] = -sum / l[i][i]
		}

		lower[c] = column
	}

	out := make([][]float64, n)

	for i := range n {
		out[i] = make([]float64, i+1)

		for k := range i + 1 {
			sum := 0.0
			for m, x := range lower[i] {
				sum += x * lower[k][m+i-k]
			}

			out[i][k] = sum
		}
	}

	return out
}
