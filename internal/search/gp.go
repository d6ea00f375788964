package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/berthml/berth"
)

const (
	fantasies   = 24  // of the open trials, over which the improvement is averaged
	randoms     = 200 // candidates by lot
	neighbours  = 60  // candidates near the best trials
	climbers    = 3   // candidates that are improved parameter by parameter
	climbs      = 4   // rounds of that
	bestAround  = 5   // trials whose neighbours are candidates
	pointsToFit = 60  // from which theta is fitted: half the best, half the newest
)

// gp suggests by a Gaussian process: where the improvement over the best trial, expected
// over fantasies of the open trials, is largest. It was better than TPE on most tables of
// bench/search, the more the more trials were open at once.
type gp struct {
	space *space
}

// promising is an assignment with its coordinates, and how promising it is.
type promising struct {
	berth.Assignment

	at    []float64
	score float64
}

// suggest is the most promising candidate that may be tried and was not; nil when it finds
// none.
func (m *gp) suggest(p *past, random *rand.Rand) berth.Assignment {
	h := m.hunt(p, random)

	var found []promising

	try := func(at []float64) {
		if c, ok := h.judge(at); ok {
			found = append(found, c)
		}
	}

	for range randoms {
		try(m.space.lot(random))
	}

	for i := range neighbours {
		try(h.mutated(h.best[i%len(h.best)], random))
	}

	if len(found) == 0 {
		return nil
	}

	slices.SortStableFunc(found, func(a, b promising) int { return cmp.Compare(b.score, a.score) })

	top := found[0]
	for _, c := range found[:min(climbers, len(found))] {
		if c = h.climb(c, random); c.score > top.score {
			top = c
		}
	}

	return top.Assignment
}

// hunt is one suggestion: the process with the open trials, fantasies of these, and the
// processes of constraints.
type hunt struct {
	space       *space
	past        *past
	objective   belief
	constraints []belief
	draws       [][]float64 // by fantasy: L^-1 of all scores
	least       []float64   // by fantasy: the best score of all; nil = none is known that keeps all constraints
	best        [][]float64 // coordinates of the best trials
}

func (m *gp) hunt(p *past, random *rand.Rand) *hunt {
	ended, waiting := p.split()
	h := &hunt{space: m.space, past: p}

	for _, k := range ended[:min(bestAround, len(ended))] {
		h.best = append(h.best, k.at)
	}

	h.constraints = m.constraints(ended)

	// What a trial is worth does not depend on the constraints that it breaks.
	for i := range ended {
		if k := &ended[i]; k.end == infeasible && k.beyond != nil {
			k.end, k.loss = complete, k.own
		}
	}

	slices.SortStableFunc(ended, known.compareLoss)
	h.objective = m.believe(ended, normalScores(ended))

	// The best mean at a tried point, which is its score less its share of the noise: a
	// measurement alone may be lucky.
	g := &h.objective
	best, shares := math.Inf(1), slices.Clone(g.solved)
	g.factor.solveUp(shares)

	for i, score := range g.scores {
		if ended[i].end != unproven && !slices.ContainsFunc(ended[i].beyond, broken) {
			best = min(best, score-g.noise()*shares[i])
		}
	}

	g.points = append(g.points, m.space.units(waiting)...)
	for range waiting {
		g.add(g.weights)
	}

	g.buffer = make([]float64, len(g.factor))

	for range fantasies {
		draw := append(slices.Clone(g.solved), make([]float64, len(waiting))...)
		least := best

		for i := len(ended); i < len(draw); i++ {
			draw[i] = random.NormFloat64()
			least = min(least, dot(g.factor[i], draw[:i+1]))
		}

		h.draws, h.least = append(h.draws, draw), append(h.least, least)

		if len(waiting) == 0 {
			break // all are alike
		}
	}

	if math.IsInf(best, 1) {
		h.least = nil
	}

	return h
}

func broken(beyond float64) bool { return beyond > 0 }

// belief is a process that has learned from the ended trials.
type belief struct {
	process

	weights []float64
	solved  []float64 // L^-1 of the scores
	buffer  []float64 // L^-1 of the covariances with the point that was asked for last
}

// believe makes a process of trials, the most telling ones first.
func (m *gp) believe(ended []known, scores []float64) belief {
	g := process{apart: make([]bool, len(m.space.searched)), theta: newTheta(len(m.space.searched)), scores: scores}
	for j := range g.apart {
		g.apart[j] = m.space.searched[j].Type == berth.ParameterCategorical
	}

	g.points = m.space.units(ended)

	fitted := g
	if n := len(ended); n > pointsToFit {
		fitted.points, fitted.scores = nil, nil
		old := numberBefore(ended, pointsToFit/2)

		for i, k := range ended {
			if i < pointsToFit/2 || k.number > old {
				fitted.points, fitted.scores = append(fitted.points, g.points[i]), append(fitted.scores, g.scores[i])
			}
		}
	}

	fitted.fit()
	g.theta = fitted.theta
	b := belief{process: g, weights: g.weights(), solved: slices.Clone(scores), buffer: make([]float64, len(ended))}

	for range ended {
		b.add(b.weights)
	}

	b.factor.solve(b.solved)

	return b
}

// at returns the mean and the deviation at a point.
func (b *belief) at(unit []float64) (mean, deviation float64) {
	b.covariances(unit, b.buffer, b.weights)
	b.factor.solve(b.buffer)

	variance := math.Exp(b.theta.scale)
	for _, x := range b.buffer {
		variance -= x * x
	}

	return dot(b.solved, b.buffer), math.Sqrt(max(variance, 1e-10))
}

// constraints are processes of how far results are beyond each constraint, near which the
// scale is that of the median, and far from which it is logarithmic. The trials nearest to
// the edge tell most.
func (m *gp) constraints(ended []known) (out []belief) {
	var tested []known

	for _, k := range ended {
		if k.beyond != nil {
			tested = append(tested, k)
		}
	}

	if len(tested) == 0 {
		return nil
	}

	for c := range tested[0].beyond {
		far := func(k known) float64 { return math.Abs(k.beyond[c]) }
		slices.SortStableFunc(tested, func(a, b known) int { return cmp.Compare(far(a), far(b)) })

		unit, scores := max(far(tested[len(tested)/2]), 1e-300), make([]float64, len(tested))
		for i, k := range tested {
			scores[i] = math.Asinh(k.beyond[c] / unit)
		}

		out = append(out, m.believe(tested, scores))
	}

	return out
}

// judge says how promising a point is; ok = it may be tried and was not.
func (h *hunt) judge(at []float64) (c promising, ok bool) {
	a, actual, err := h.space.assign(at)
	if err != nil || h.past.tried[key(actual)] {
		return promising{}, false
	}

	return promising{Assignment: a, at: actual, score: h.improvement(h.space.unit(actual))}, true
}

// improvement is the logarithm of the expected improvement over the fantasies, times the
// chance that all constraints are kept; of that chance alone while none that was tried keeps
// them.
func (h *hunt) improvement(unit []float64) float64 {
	chance := 0.0

	for c := range h.constraints {
		mean, deviation := h.constraints[c].at(unit)
		chance += logNormal(-mean / deviation)
	}

	if h.least == nil {
		return coarse(chance)
	}

	_, deviation := h.objective.at(unit)
	sum := 0.0

	for s, draw := range h.draws {
		z := (h.least[s] - dot(h.objective.buffer, draw)) / deviation
		sum += deviation * (z*normal(z) + math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
	}

	return coarse(math.Log(sum/float64(len(h.draws))+1e-300) + chance)
}

// climb improves a candidate parameter by parameter.
func (h *hunt) climb(c promising, random *rand.Rand) promising {
	for range climbs {
		moved := false

		for j := range h.space.searched {
			if math.IsNaN(c.at[j]) {
				continue
			}

			for _, v := range h.space.searched[j].near(c.at[j], random) {
				at := slices.Clone(c.at)
				at[j] = v

				if other, ok := h.judge(h.space.filled(at, random)); ok && other.score > c.score {
					c, moved = other, true
				}
			}
		}

		if !moved {
			break
		}
	}

	return c
}

// mutated is a trial with one or two parameters elsewhere.
func (h *hunt) mutated(at []float64, random *rand.Rand) []float64 {
	out := h.space.filled(slices.Clone(at), random)

	for range 1 + random.IntN(2) {
		d := random.IntN(len(out))
		if near := h.space.searched[d].near(out[d], random); len(near) > 0 {
			out[d] = near[random.IntN(len(near))]
		}
	}

	return out
}

// numberBefore is the number of the trial before the newest n.
func numberBefore(trials []known, n int) int {
	numbers := make([]int, len(trials))
	for i, k := range trials {
		numbers[i] = k.number
	}

	slices.Sort(numbers)

	return numbers[len(numbers)-n-1]
}

// normalScores are the losses of trials, which are sorted, on a scale of the normal
// distribution. The worse half counts by its rank, so that outliers do not matter, and what
// cannot work is worst; the better half keeps its distances, so that the bottom of a valley
// stays smooth. Equal trials have equal scores.
func normalScores(sorted []known) []float64 {
	scores := make([]float64, len(sorted))

	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to].compareLoss(sorted[from]) == 0 {
			to++
		}

		middle := float64(from+to) / 2 / float64(len(sorted))
		for ; from < to; from++ {
			scores[from] = math.Sqrt2 * math.Erfinv(2*middle-1)
		}
	}

	valued := slices.IndexFunc(sorted, func(k known) bool { return k.end == infeasible })
	if valued < 0 {
		valued = len(sorted)
	}

	half := min(len(sorted)/2, valued-1)
	if half < 1 || sorted[half].loss <= sorted[0].loss {
		return scores
	}

	span, least := sorted[half].loss-sorted[0].loss, scores[0]
	for i, k := range sorted[:half] {
		scores[i] = scores[half] + (least-scores[half])*((sorted[half].loss-k.loss)/span)
	}

	return scores
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}

	return sum
}

// units are the coordinates of trials on the unit cube.
func (sp *space) units(trials []known) [][]float64 {
	out := make([][]float64, len(trials))
	for i, k := range trials {
		out[i] = sp.unit(k.at)
	}

	return out
}

// unit are coordinates on the unit cube; choices stay numbers.
func (sp *space) unit(at []float64) []float64 {
	out := slices.Clone(at)

	for j := range sp.searched {
		if d := &sp.searched[j]; d.Type != berth.ParameterCategorical {
			low, high := d.scale(*d.Min), d.scale(*d.Max)
			out[j] = (d.scale(at[j]) - low) / max(high-low, 1e-300)
		}
	}

	return out
}

// lot are coordinates by lot.
func (sp *space) lot(random *rand.Rand) []float64 {
	at := make([]float64, len(sp.searched))
	for j := range at {
		at[j] = math.NaN()
	}

	return sp.filled(at, random)
}

// filled has coordinates by lot where there is none, since a condition may now be met.
func (sp *space) filled(at []float64, random *rand.Rand) []float64 {
	for j := range at {
		if math.IsNaN(at[j]) {
			at[j] = sp.searched[j].lot(random)
		}
	}

	return at
}

func (d *dim) lot(random *rand.Rand) float64 {
	if d.finite {
		return d.pointAt(d.indexAt(random.Float64()))
	}

	return d.floatAt(random.Float64())
}

// near are coordinates around one: all choices, the next points of few, or draws at four
// distances.
func (d *dim) near(at float64, random *rand.Rand) []float64 {
	var out []float64

	if d.Type == berth.ParameterCategorical {
		for k := range d.points {
			out = append(out, d.pointAt(k))
		}

		return out
	}

	const few = 64 // points whose next ones are near enough

	if d.finite && d.points <= few {
		for _, k := range []int64{-2, -1, 1, 2} {
			if i := d.index(at) + k; i >= 0 && i < d.points {
				out = append(out, d.pointAt(i))
			}
		}

		return out
	}

	low, high := d.scale(*d.Min), d.scale(*d.Max)

	for _, distance := range []float64{0.1, 0.03, 0.009, 0.0027} { // of the range
		y := d.scale(at) + (high-low)*distance*random.NormFloat64()
		out = append(out, d.unscaled(min(max(y, low), high)))
	}

	return out
}
