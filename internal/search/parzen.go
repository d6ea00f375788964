package search

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/berthml/berth"
)

// parzen is a density over some searched parameters: a mixture of one kernel for each
// observation and one for the prior, each a product over the parameters. It is that of
// Optuna 5.0.0 (optuna/samplers/_tpe/parzen_estimator.py and probability_distributions.py).
type parzen struct {
	columns []column
	weights []float64 // of the kernels, the prior's last; their sum is 1
}

// column is a parzen's kernels in one parameter.
type column struct {
	*dim

	low, high float64 // on the scale, with half a step to either side

	choice    []int     // by kernel
	hit, miss float64   // logarithms of a kernel's mass at its own choice, and at another
	mu, sigma []float64 // by kernel: a normal distribution cut off at low and high
	cut       []float64 // logarithm of its mass between them
	class     []int     // of points: equal kernels have one class
	classes   []int     // a kernel of each class
}

const (
	// fullWeights is how many of the newest observations have the whole weight (Optuna's
	// default_weights); older ones have less, down to 1/n.
	fullWeights = 25
	// mostKernels bounds the cost of a suggestion; older observations, whose weights are small,
	// are left out.
	mostKernels = 2000
	// narrowest is how many times narrower than its range a kernel is at most (Optuna's magic
	// clip).
	narrowest = 100
)

// newParzen makes the density of observations, the oldest first: rows with a coordinate
// for each of dims. alike = all weigh the same.
func newParzen(dims []*dim, rows [][]float64, alike bool) *parzen {
	weights := observationWeights(len(rows))
	if alike {
		weights = slices.Repeat([]float64{1}, len(rows))
	}

	if n := len(rows) - mostKernels; n > 0 {
		rows, weights = rows[n:], weights[n:]
	}

	p := &parzen{weights: append(weights, 1)}
	sum := 0.0

	for _, w := range p.weights {
		sum += w
	}

	for i := range p.weights {
		p.weights[i] /= sum
	}

	for j, d := range dims {
		at := make([]float64, len(rows))
		for i, row := range rows {
			at[i] = row[j]
		}

		p.columns = append(p.columns, newColumn(d, at))
	}

	return p
}

func observationWeights(n int) []float64 {
	weights := make([]float64, n)
	old := n - fullWeights

	for i := range weights {
		weights[i] = 1

		switch {
		case old == 1 && i == 0:
			weights[i] = 1 / float64(n)
		case i < old:
			least := 1 / float64(n)
			weights[i] = least + (1-least)*float64(i)/float64(old-1)
		}
	}

	return weights
}

func newColumn(d *dim, at []float64) column {
	c := column{dim: d}
	n := len(at)

	if d.Type == berth.ParameterCategorical {
		prior := 1 / float64(n+1)
		all := 1 + prior*float64(d.points)
		c.hit, c.miss = math.Log((1+prior)/all), math.Log(prior/all)

		c.choice = make([]int, n, n+1)
		for i, x := range at {
			c.choice[i] = int(x)
		}

		c.choice = append(c.choice, -1)

		return c
	}

	c.low, c.high = d.bounds()
	c.mu = make([]float64, n, n+1)

	for i, x := range at {
		c.mu[i] = min(max(d.scale(x), c.low), c.high)
	}

	c.sigma = append(widths(c.mu, c.low, c.high), c.high-c.low)
	c.mu = append(c.mu, (c.low+c.high)/2)
	c.cut = make([]float64, n+1)

	for i, mu := range c.mu {
		c.cut[i] = logMass(cutoffAt((c.low-mu)/c.sigma[i]), cutoffAt((c.high-mu)/c.sigma[i]))
	}

	if !d.finite {
		return c
	}

	class := make(map[[2]float64]int)
	c.class = make([]int, 0, n+1)

	for i, mu := range c.mu {
		sigma := c.sigma[i]

		known, is := class[[2]float64{mu, sigma}]
		if !is {
			known = len(c.classes)
			class[[2]float64{mu, sigma}] = known
			c.classes = append(c.classes, i)
		}

		c.class = append(c.class, known)
	}

	return c
}

// bounds are the range on the scale, with half a step to either side.
func (d *dim) bounds() (low, high float64) {
	if !d.finite {
		return d.scale(*d.Min), d.scale(*d.Max)
	}

	return d.scale(*d.Min - d.unit()/2), d.scale(d.pointAt(d.points-1) + d.unit()/2)
}

// scale is where a parameter is uniform: its logarithm, or itself.
func (d *dim) scale(x float64) float64 {
	if d.Log {
		return math.Log(x)
	}

	return x
}

// widths are the standard deviations of kernels: the larger distance to a neighbour or
// bound, of the outermost ones to their only neighbour.
func widths(mu []float64, low, high float64) []float64 {
	type place struct {
		mu float64
		i  int
	}

	n := len(mu)
	order := make([]place, n)

	for i, x := range mu {
		order[i] = place{x, i}
	}

	slices.SortFunc(order, func(a, b place) int {
		switch {
		case a.mu < b.mu:
			return -1
		case a.mu > b.mu:
			return 1
		default:
			return a.i - b.i
		}
	})

	at := func(i int) float64 {
		switch {
		case i < 0:
			return low
		case i >= n:
			return high
		default:
			return order[i].mu
		}
	}

	out := make([]float64, n, n+1) // with room for the prior's
	least := (high - low) / min(narrowest, float64(n+2))

	for i := range order {
		left, right := at(i)-at(i-1), at(i+1)-at(i)

		width := max(left, right)
		if n >= 2 && i == 0 {
			width = right
		}

		if n >= 2 && i == n-1 {
			width = left
		}

		out[order[i].i] = min(max(width, least), high-low)
	}

	return out
}

// logDensities are the logarithms of the density at rows of coordinates.
func (p *parzen) logDensities(rows [][]float64) []float64 {
	weights := make([]float64, len(p.weights))
	for i, w := range p.weights {
		weights[i] = math.Log(w)
	}

	n := len(weights)
	all := slices.Repeat(weights, len(rows))
	logs := make([][]float64, len(rows)) // by row and kernel

	for r := range logs {
		logs[r] = all[r*n : (r+1)*n]
	}

	at := make([]float64, len(rows))

	for j := range p.columns {
		for r, row := range rows {
			at[r] = row[j]
		}

		p.columns[j].addTo(logs, at)
	}

	out := make([]float64, len(rows))
	for r := range rows {
		out[r] = logSumExp(logs[r])
	}

	return out
}

// addTo adds the logarithms of the kernels' densities at coordinates, by row and kernel.
func (c *column) addTo(logs [][]float64, at []float64) {
	switch {
	case c.choice != nil:
		prior := -math.Log(float64(c.points))

		for r, x := range at {
			for i, choice := range c.choice {
				switch choice {
				case int(x):
					logs[r][i] += c.hit
				case -1:
					logs[r][i] += prior
				default:
					logs[r][i] += c.miss
				}
			}
		}
	case c.finite:
		c.addMasses(logs, at)
	default:
		const root = 0.9189385332046727 // log(2 pi) / 2

		height := make([]float64, len(c.mu)) // of each kernel
		for i, sigma := range c.sigma {
			height[i] = root + math.Log(sigma) + c.cut[i]
		}

		for r, x := range at {
			y, row := c.scale(x), logs[r]

			for i, mu := range c.mu {
				z := (y - mu) / c.sigma[i]
				row[i] -= z*z/2 + height[i]
			}
		}
	}
}

// addMasses is addTo for a number with points: a kernel's mass within half a step. Few
// points have few classes of kernels, and neighbours share an edge.
func (c *column) addMasses(logs [][]float64, at []float64) {
	half := c.unit() / 2
	masses := make(map[float64][]float64, len(at)) // by coordinate and class
	edges := make(map[float64][]cutoff, len(at))   // by edge and class

	cutoffs := func(edge float64) []cutoff {
		found, is := edges[edge]
		if !is {
			y := c.scale(edge)
			found = make([]cutoff, len(c.classes))

			for j, i := range c.classes {
				found[j] = cutoffAt((y - c.mu[i]) / c.sigma[i])
			}

			edges[edge] = found
		}

		return found
	}

	for r, x := range at {
		byClass, is := masses[x]
		if !is {
			from, to := cutoffs(x-half), cutoffs(x+half)
			byClass = make([]float64, len(c.classes))

			for j, i := range c.classes {
				byClass[j] = logMass(from[j], to[j]) - c.cut[i]
			}

			masses[x] = byClass
		}

		for i, class := range c.class {
			logs[r][i] += byClass[class]
		}
	}
}

// draw is a row of coordinates by lot.
func (p *parzen) draw(random *rand.Rand) []float64 {
	kernel := pick(random, p.weights)
	row := make([]float64, len(p.columns))

	for j := range p.columns {
		row[j] = p.columns[j].draw(random, kernel)
	}

	return row
}

func (c *column) draw(random *rand.Rand, kernel int) float64 {
	if c.choice != nil {
		// The kernel's own choice, or one of all: its masses are miss, and hit-miss more at its own.
		part := random.Float64()
		if own := c.choice[kernel]; own >= 0 && part < math.Exp(c.hit)-math.Exp(c.miss) {
			return float64(own)
		}

		return float64(random.Int64N(c.points))
	}

	mu, sigma := c.mu[kernel], c.sigma[kernel]
	from, to := normal((c.low-mu)/sigma), normal((c.high-mu)/sigma)
	y := mu + sigma*math.Sqrt2*math.Erfinv(2*(from+random.Float64()*(to-from))-1)

	return c.unscaled(min(max(y, c.low), c.high))
}

// pick is a number by its weight; the weights' sum is 1.
func pick(random *rand.Rand, weights []float64) int {
	at := random.Float64()

	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}

	return len(weights) - 1
}

// normal is the standard normal distribution function.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// cutoff is a place on a standard normal distribution, and the mass beyond it: away from the
// middle, where it is exact.
type cutoff struct{ z, tail float64 }

func cutoffAt(z float64) cutoff {
	if away := math.Abs(z); away < remote {
		return cutoff{z, normal(-away)}
	}

	return cutoff{z, 0}
}

// logMass is the logarithm of the standard normal mass between a and b.
func logMass(a, b cutoff) float64 {
	switch {
	case a.z <= 0 && b.z > 0:
		return math.Log1p(-a.tail - b.tail)
	case a.z > 0 && a.z < remote:
		return math.Log(a.tail - b.tail)
	case a.z <= 0 && b.z > -remote:
		return math.Log(b.tail - a.tail)
	default:
		near := min(math.Abs(a.z), math.Abs(b.z))

		return -near * near / 2
	}
}

// remote is how many deviations away a kernel counts nothing beside the prior: e^-50, as a
// bound of its mass.
const remote = 10

// far is how low normal is exact.
const far = -30

// logNormal is the logarithm of normal, far below zero by its asymptotic series.
func logNormal(x float64) float64 {
	if x > far {
		return math.Log(normal(x))
	}

	square := x * x

	return -square/2 - math.Log(-x) - math.Log(2*math.Pi)/2 + math.Log1p(-1/square+3/(square*square))
}

// negligible is how far below the largest logarithm a term adds nothing: e^-45 of it, which
// 2,000 of them leave below the last bit.
const negligible = 45

func logSumExp(logs []float64) float64 {
	most := slices.Max(logs)
	if math.IsInf(most, 0) {
		return most
	}

	sum := 0.0

	for _, x := range logs {
		if x > most-negligible {
			sum += math.Exp(x - most)
		}
	}

	return most + math.Log(sum)
}
