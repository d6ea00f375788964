package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/pareto"
)

// end is how an earlier trial teaches a model.
type end int

const (
	open       end = iota // it has no result yet
	complete              // it has a value
	stopped               // early, with the value that was judged last
	infeasible            // its values cannot work: they need too much memory, the training diverged, or a constraint is broken
	unproven              // as stopped, in a search with constraints, of which nothing is known
)

// known is an earlier trial that a model knows.
type known struct {
	number int
	at     []float64 // by searched parameter its coordinate; NaN = it is inactive
	end    end
	loss   float64   // of a complete or stopped one; less is better. Of an infeasible one by how much constraints are broken
	losses []float64 // of a complete one, with several objectives; loss is then its place among all
	beyond []float64 // by constraint, by how much its result is beyond it; nil = not known
	own    float64   // of an infeasible one with beyond: the loss of its objective
	step   int64     // of the loss of a stopped one
}

// past is what a model knows of earlier trials, by number.
type past struct {
	trials []known
	prior  int // of them, from earlier sweeps: the first ones
	ended  int // of the sweep's own; the others are open
	tried  map[string]bool
}

// observe reads earlier trials, and before them the trials of earlier sweeps. A trial that was
// canceled, or failed for another reason than its values, teaches nothing, but its values are
// not tried again.
func (s *Searcher) observe(observations []berth.Observation, priors [][]berth.Observation) *past {
	p := s.observeOwn(observations)
	if len(priors) == 0 {
		return p
	}

	rank(p.trials)

	own := p.trials
	p.trials = nil

	for _, prior := range priors {
		p.trials = append(p.trials, thinned(s.usable(prior), mostPriors/len(priors))...)
	}

	for i := range p.trials {
		p.trials[i].number = i - len(p.trials) // before all of this sweep
	}

	p.prior = len(p.trials)
	p.trials = append(p.trials, own...)

	return p
}

// mostPriors is how many trials of earlier sweeps count: a Gaussian process suggests from 250,
// and most of these should be the sweep's own.
const mostPriors = 100

// usable are the trials of an earlier sweep that are in this space, ranked.
func (s *Searcher) usable(prior []berth.Observation) (trials []known) {
	for _, o := range prior {
		k := known{number: o.Number, at: s.space.coordinates(o.Params), end: infeasible, loss: math.Inf(1)}
		if o.Value != nil {
			k.end, k.loss = complete, *o.Value
		}

		if s.Holds(o.Params) {
			trials = append(trials, k)
		}
	}

	rank(trials)

	return trials
}

// Holds reports whether an assignment of another sweep has a value in range for each parameter.
func (s *Searcher) Holds(a berth.Assignment) bool {
	for i := range s.space.searched {
		d := &s.space.searched[i]
		if !d.Active(a) {
			continue
		}

		v, has := a[d.Name]
		n, isNumber := v.Number()

		switch {
		case !has:
			return false
		case d.Type == berth.ParameterCategorical:
			if !slices.Contains(d.Values, v) {
				return false
			}
		case !isNumber || n < *d.Min || n > *d.Max:
			return false
		}
	}

	return true
}

// rank puts the place of each ended trial among the others, between 0 and 1, for its loss: so
// trials of sweeps with other metrics, data or lengths compare. Equal ones share a place.
func rank(trials []known) {
	var ended []*known

	for i := range trials {
		if k := &trials[i]; k.end == complete || k.end == stopped {
			ended = append(ended, k)
		}
	}

	slices.SortStableFunc(ended, func(a, b *known) int { return a.compareLoss(*b) })

	places := make([]float64, len(ended))

	for from := 0; from < len(ended); {
		to := from
		for to < len(ended) && ended[to].loss == ended[from].loss {
			to++
		}

		for i := from; i < to; i++ {
			places[i] = float64(from+to) / 2 / float64(len(ended))
		}

		from = to
	}

	for i, k := range ended {
		k.loss = places[i]
	}
}

// thinned are at most n trials, spread over their ranks, the best one first.
func thinned(trials []known, n int) []known {
	if len(trials) <= n {
		return trials
	}

	sorted := slices.Clone(trials)
	slices.SortStableFunc(sorted, known.compareLoss)

	out := make([]known, n)
	for i := range out {
		out[i] = sorted[i*len(sorted)/n]
	}

	return out
}

func (s *Searcher) observeOwn(observations []berth.Observation) *past {
	dims := len(s.space.searched)
	p := &past{tried: make(map[string]bool, len(observations)), trials: make([]known, 0, len(observations)+1)}
	coordinates := make([]float64, dims*len(observations))

	for i, o := range observations {
		k := known{number: o.Number, at: coordinates[i*dims : (i+1)*dims : (i+1)*dims]}
		s.space.locate(o.Params, k.at)

		switch {
		case !o.State.Terminal():
		case (o.State == berth.TrialSucceeded || o.State == berth.TrialPruned) && o.Value != nil && (len(o.Results) > 0 || !s.several()):
			k.end, k.loss, k.beyond = complete, s.spec.Objective.Loss(*o.Value), s.beyond(o)
			if s.several() {
				k.losses = s.spec.Objective.Losses(o.Results)
			}

			if o.State == berth.TrialPruned {
				k.end, k.step = stopped, o.Step
				if len(s.spec.Constraints) > 0 {
					k.end = unproven
				}
			}
		case o.State == berth.TrialSucceeded && len(o.Results) > 0:
			k.end, k.beyond, k.own = infeasible, s.beyond(o), s.spec.Objective.Loss(o.Results[s.spec.Objective.Metric])
			for _, x := range k.beyond {
				k.loss += max(x, 0)
			}
		case o.State == berth.TrialInfeasible || o.State == berth.TrialPruned || o.Kind == berth.FailureNotFinite:
			k.end, k.loss = infeasible, math.Inf(1)
		default:
			p.tried[key(k.at)] = true

			continue
		}

		p.add(k)
	}

	if s.several() {
		p.placeByFronts()
	}

	return p
}

// several reports whether there are several objectives.
func (s *Searcher) several() bool {
	return s.spec.Objective != nil && len(s.spec.Objective.Further) > 0
}

// beyond is by how much results are beyond each constraint; nil = there are no constraints,
// or the trial did not come so far.
func (s *Searcher) beyond(o berth.Observation) (beyond []float64) {
	for _, c := range s.spec.Constraints {
		if value, has := o.Results[c.Metric]; has {
			beyond = append(beyond, c.Beyond(value))
		}
	}

	return beyond
}

// placeByFronts puts the place of each complete trial among all for its loss.
func (p *past) placeByFronts() {
	var (
		places []int // in trials
		losses [][]float64
	)

	for i, k := range p.trials {
		if k.end == complete {
			places, losses = append(places, i), append(losses, k.losses)
		}
	}

	for place, i := range pareto.Order(losses, goodOfSeveral(p.teachers())) {
		p.trials[places[i]].loss = float64(place)
	}
}

func (p *past) add(k known) {
	p.trials = append(p.trials, k)
	p.tried[key(k.at)] = true

	if k.end != open {
		p.ended++
	}
}

// teachers is how many trials a model learns from.
func (p *past) teachers() int { return p.prior + p.ended }

// best are the numbers of the n best ended trials, by known.compare; of equal ones the earlier.
func (p *past) best(n int) map[int]bool {
	var top []*known // the best first

	for i := range p.trials {
		k := &p.trials[i]
		if k.end == open || len(top) == n && (n == 0 || k.compare(*top[n-1]) >= 0) {
			continue
		}

		at := len(top)
		for at > 0 && k.compare(*top[at-1]) < 0 {
			at--
		}

		top = slices.Insert(top, at, k)
		top = top[:min(len(top), n)]
	}

	numbers := make(map[int]bool, n)
	for _, k := range top {
		numbers[k.number] = true
	}

	return numbers
}

// split are the ended trials, the best first by compareLoss, and the open ones.
func (p *past) split() (ended, waiting []known) {
	for _, k := range p.trials {
		if k.end == open {
			waiting = append(waiting, k)
		} else {
			ended = append(ended, k)
		}
	}

	slices.SortStableFunc(ended, known.compareLoss)

	return ended, waiting
}

// compare puts better trials first, as Optuna's TPE does: by value, then stopped ones, the one
// that came further first, and values that cannot work last. In a search with constraints
// stopped ones come after those that broke a constraint: they may break it by more.
func (k known) compare(other known) int {
	return cmp.Or(cmp.Compare(k.end, other.end), cmp.Compare(other.step, k.step), cmp.Compare(k.loss, other.loss))
}

// compareLoss takes the last value of a stopped trial for its result: a process learns where
// values are bad, and a trial that was among the first to be judged says no more than one
// that was stopped (Salinas and others, ICML 2023).
func (k known) compareLoss(other known) int {
	if k.end == stopped || k.end == unproven {
		k.end = complete
	}

	if other.end == stopped || other.end == unproven {
		other.end = complete
	}

	return cmp.Or(cmp.Compare(k.end, other.end), cmp.Compare(k.loss, other.loss))
}

// coordinates are the values of the searched parameters as numbers: a choice by its
// number, NaN where an assignment has none.
func (sp *space) coordinates(a berth.Assignment) []float64 {
	at := make([]float64, len(sp.searched))
	sp.locate(a, at)

	return at
}

// locate writes the coordinates of an assignment.
func (sp *space) locate(a berth.Assignment, at []float64) {
	for i := range sp.searched {
		at[i] = sp.searched[i].coordinate(a)
	}
}

func (d *dim) coordinate(a berth.Assignment) float64 {
	v, has := a[d.Name]
	if !has {
		return math.NaN()
	}

	if d.Type == berth.ParameterCategorical {
		for i, choice := range d.Values {
			if v == choice {
				return float64(i)
			}
		}

		return math.NaN()
	}

	if x, isNumber := v.Number(); isNumber {
		return x
	}

	return math.NaN()
}

// assign makes the assignment with the values nearest to coordinates; actual are its own
// coordinates, without inactive parameters. The error is fill's.
func (sp *space) assign(at []float64) (a berth.Assignment, actual []float64, err error) {
	a = berth.Assignment{}
	err = sp.fill(a, func(st step) berth.Value { return sp.searched[st.dim].value(sp.algorithm, at[st.dim]) })

	return a, sp.coordinates(a), err
}

// value is coordinate's inverse: the nearest value that the parameter may have.
func (d *dim) value(algorithm string, at float64) berth.Value {
	if d.finite {
		return d.Point(algorithm, d.index(at))
	}

	return berth.FloatValue(d.rounded(at))
}

// index is the number of the point nearest to a coordinate.
func (d *dim) index(at float64) int64 {
	if d.Type != berth.ParameterCategorical {
		at = (at - *d.Min) / d.unit()
	}

	return int64(min(max(math.Round(at), 0), float64(d.points-1)))
}

// pointAt is index's inverse: the coordinate of a point.
func (d *dim) pointAt(i int64) float64 {
	if d.Type == berth.ParameterCategorical {
		return float64(i)
	}

	return *d.Min + float64(i)*d.unit()
}

// unscaled is scale's inverse: the nearest coordinate that the parameter may have.
func (d *dim) unscaled(y float64) float64 {
	if d.Log {
		y = math.Exp(y)
	}

	if d.finite {
		return d.pointAt(d.index(y))
	}

	return d.rounded(y)
}

// unit is the distance of two points of a number that has points.
func (d *dim) unit() float64 {
	if d.Step != nil {
		return *d.Step
	}

	return 1
}

// key is a text that only equal coordinates have.
func key(at []float64) string {
	text := make([]byte, 0, 8*len(at))

	for _, x := range at {
		if math.IsNaN(x) {
			x = math.Inf(1) // one of the many
		}

		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(x))
	}

	return string(text)
}
