package parallelism

import (
	"cmp"
	"math"
	"slices"

	"github.com/berthml/berth"
)

const (
	// gainful is how much a larger company must gain to be worth its memory and
	// cores: more than the scatter of equal attempts' times (2 to 4 %, one H200,
	// 2026-11-21), and less than the difference at which h200.md's pairs count as
	// different.
	gainful = 0.05
	// modeGain is how much the mode that is not the rule's must gain.
	modeGain = 0.02

	// climbAhead is how many times as many attempts as are tried at once must wait:
	// one generation to measure, the rest to gain by it.
	climbAhead = 2
	// fewerAhead is the same for fewer at once, which gain memory and cores alone.
	fewerAhead = 4
	// modeAhead is the same for the other mode, for which the GPU runs empty twice.
	modeAhead = 6

	// HeavyMilli of a GPU's SMs or bandwidth, in the mean over a run, is a shape beside
	// which MPS may be the wrong mode: small matrix products starved beside large ones
	// and beside streams of memory, which took 0.7 to 0.9 of a GPU while they computed,
	// half of their time (one H200, 2026-11-22 and 24).
	HeavyMilli = 350

	// settled is how many attempts a company needs before larger ones are tried again that
	// were judged by less than surely times as many attempts as they have: the first to
	// end in a company came before it was as large, and are the short ones.
	settled = 48
	surely  = 4

	// fewAtOnce is how many share a GPU at most when the mode is in question: where more
	// get on well together they are small, and small ones gain by MPS.
	fewAtOnce = 8

	// spareTime is the part of its time limit that an attempt may take in its
	// company.
	spareTime = 0.8

	// leastSamples is how many attempts say something of a company; half of it for a
	// large one.
	leastSamples = 3
)

// Question is the input of the advice for one mix of shapes on one kind of GPU.
type Question struct {
	Paces   []berth.Pace
	Modes   []berth.SharingMode // of the GPU, the preferred one first
	Waiting map[string]int      // attempts that wait, by the shape of their paces
	Left    int                 // trials of the same sweeps that will ask for a place later
	Now     berth.SharingMode   // of the attempts there; empty = none are
	Limits  map[string]float64  // seconds that an attempt may take, by the shape of its paces; missing = no limit
	Most    int                 // attempts that the GPU takes at once, under any advice; 0 = not known
	Heavy   bool                // one of the shapes may fill the GPU, so that the first mode may be wrong
}

// level is the measured speed of one company.
type level struct {
	berth.Company

	value   float64 // ln of how fast the waiting attempts would be done, up to a constant
	samples float64
	err     float64 // of value: one standard error
}

// Advise answers a question. Without anything known its answer is zero: the rule
// decides.
func Advise(q Question) berth.Advice {
	levels := known(q)
	if len(levels) == 0 {
		return berth.Advice{}
	}

	best := choose(levels, q.Modes)
	if q.leaves(levels, best) {
		return berth.Advice{}
	}

	chosen := stay(levels, best, q)

	advised, trying := climb(levels, chosen, q)
	if !trying {
		advised, trying = otherMode(levels, chosen, q)
	}

	if !trying {
		advised = chosen.Company
	}

	return berth.Advice{
		Company: advised, Capped: q.capped(levels, advised), Trying: trying,
		Why: why(levels, chosen, advised, trying, chosen.Mode != best.Mode),
	}
}

// leaves reports whether the GPU is left to the rule. Either the best company has a mode
// that the rule would not choose, and the rule's mode was never measured, because it was
// not available. Or a change of mode is not worth it, because the present mode has no
// measurement to compare with.
func (q Question) leaves(levels []level, best level) bool {
	first := berth.Company{Mode: q.Modes[0], AtOnce: best.AtOnce}
	harms := slices.ContainsFunc(q.Paces, func(p berth.Pace) bool { return p.Mode == first.Mode && q.harms(p.Company) })

	if _, measured := bestIn(levels, first.Mode); !measured && !harms && q.canBe(first, best.Company) {
		return true
	}

	_, here := bestIn(levels, q.Now)

	return q.Now != "" && q.Now != best.Mode && !here && q.queue() < modeAhead*best.AtOnce
}

// capped reports whether no more attempts than advised may come: more were measured, or do
// harm, or the mode is not the rule's own. Else the rule may let more come: perhaps few
// were seen for lack of others.
func (q Question) capped(levels []level, advised berth.Company) bool {
	return advised.Mode != q.Modes[0] || q.harms(advised) || slices.ContainsFunc(levels, func(l level) bool { return l.AtOnce > advised.AtOnce }) ||
		slices.ContainsFunc(q.Paces, func(p berth.Pace) bool { return p.AtOnce > advised.AtOnce && q.harms(p.Company) })
}

// known returns the companies with enough samples, the smallest first, without
// harmful ones. When all do harm, it returns the smallest one.
func known(q Question) []level {
	enough := slices.DeleteFunc(levels(q.Paces, q.Waiting), func(l level) bool {
		return !slices.Contains(q.Modes, l.Mode) || l.samples < max(leastSamples, float64(l.AtOnce)/2)
	})

	slices.SortFunc(enough, func(a, b level) int { return cmp.Or(cmp.Compare(a.AtOnce, b.AtOnce), cmp.Compare(a.Mode, b.Mode)) })

	harmless := slices.DeleteFunc(slices.Clone(enough), func(l level) bool { return q.harms(l.Company) })
	if len(harmless) == 0 {
		return enough[:min(len(enough), 1)]
	}

	return harmless
}

// harms reports whether a company costs trials: attempts of a shape fail in it more often
// than they end well, and do not in another one; or the waiting ones come near their time
// limits. Attempts that fail in every company have their own reason.
func (q Question) harms(c berth.Company) bool {
	return slices.ContainsFunc(q.Paces, func(p berth.Pace) bool {
		if p.Company != c {
			return false
		}

		limit, limited := q.Limits[p.ShapeKey]

		return limited && p.Samples > 0 && p.Mean*float64(c.AtOnce) > spareTime*limit ||
			fails(p) && slices.ContainsFunc(q.Paces, func(o berth.Pace) bool { return o.ShapeKey == p.ShapeKey && o.Samples > 0 && !fails(o) })
	})
}

// fails reports whether attempts of a shape fail in a company more often than they end well.
func fails(p berth.Pace) bool {
	return p.Failed >= leastSamples && p.Failed > min(p.Samples, berth.PaceMemory)
}

func before(a, b berth.Company) bool {
	return a.AtOnce < b.AtOnce || a.AtOnce == b.AtOnce && a.Mode < b.Mode
}

// queue is how many attempts wait, or will.
func (q Question) queue() int {
	n := q.Left
	for _, waiting := range q.Waiting {
		n += waiting
	}

	return n
}

// choose is the smallest company that is about as good as the best, in the mode that
// is best: the first one, unless another one gains by more than chance.
func choose(levels []level, modes []berth.SharingMode) level {
	var chosen level

	for _, mode := range modes {
		best, found := bestIn(levels, mode)
		if !found {
			continue
		}

		if chosen.AtOnce == 0 || best.value > chosen.value+max(math.Log1p(modeGain), chance(best, chosen)) {
			chosen = best
		}
	}

	for _, l := range levels {
		if l.Mode == chosen.Mode && l.value >= chosen.value+math.Log1p(-gainful) {
			return l
		}
	}

	return chosen
}

// chance is how much two levels may differ without a cause: both may be off by a
// standard error.
func chance(a, b level) float64 { return a.err + b.err }

// stay is the best company in the mode that the GPU is in now, when a change gains less
// than it costs: to run the GPU empty takes about half a generation of attempts.
func stay(levels []level, chosen level, q Question) level {
	here, found := level{}, false
	if q.Now != "" && q.Now != chosen.Mode {
		here, found = bestIn(levels, q.Now)
	}

	if !found {
		return chosen
	}

	if gain := math.Expm1(chosen.value - here.value); gain*float64(q.queue()) >= float64(chosen.AtOnce) {
		return chosen
	}

	return choose(levels, []berth.SharingMode{q.Now})
}

func bestIn(levels []level, mode berth.SharingMode) (best level, found bool) {
	for _, l := range levels {
		if l.Mode == mode && (!found || l.value > best.value) {
			best, found = l, true
		}
	}

	return best, found
}

// canBe reports whether a company may be tried: it is possible, because an impossible one
// would be tried for ever; it is not known to do harm; and if it gains nothing, no attempt
// exceeds its time limit.
func (q Question) canBe(c, from berth.Company) bool {
	if q.Most > 0 && c.AtOnce > berth.CompanySize(float64(q.Most)) || q.harms(c) {
		return false
	}

	return !slices.ContainsFunc(q.Paces, func(p berth.Pace) bool {
		limit, limited := q.Limits[p.ShapeKey]

		return limited && p.Company == from && p.Samples > 0 && p.Mean*float64(c.AtOnce) > spareTime*limit
	})
}

// climb is a company near the best that is worth trying.
func climb(levels []level, chosen level, q Question) (berth.Company, bool) {
	var same []level

	waiting := q.queue()

	for _, l := range levels {
		if l.Mode == chosen.Mode {
			same = append(same, l)
		}
	}

	top, least := same[len(same)-1], same[0]
	gains := len(same) == 1 || top.value >= same[len(same)-2].value+math.Log1p(gainful)

	of := func(atOnce int) berth.Company { return berth.Company{Mode: chosen.Mode, AtOnce: atOnce} }

	if more := next(top.AtOnce, 1); gains && more > 0 && q.canBe(of(more), top.Company) && waiting >= climbAhead*more {
		return of(more), true
	}

	if chosen.samples >= settled {
		for more := next(chosen.AtOnce, 1); more > 0 && more <= max(top.AtOnce, next(chosen.AtOnce, 1)); more = next(more, 1) {
			if q.canBe(of(more), chosen.Company) && waiting >= climbAhead*more && sampled(same, more) < max(settled/2, surely*float64(more)) {
				return of(more), true
			}
		}
	}

	if fewer := next(least.AtOnce, -1); chosen.AtOnce == least.AtOnce && fewer > 0 && waiting >= fewerAhead*chosen.AtOnce && q.canBe(of(fewer), chosen.Company) {
		return berth.Company{Mode: chosen.Mode, AtOnce: fewer}, true
	}

	return berth.Company{}, false
}

// sampled is how many attempts a company is known by, among levels of one mode.
func sampled(same []level, atOnce int) float64 {
	for _, l := range same {
		if l.AtOnce == atOnce {
			return l.samples
		}
	}

	return 0
}

// next is the next larger or smaller company size; 0 = none.
func next(atOnce, step int) int {
	sizes := berth.CompanySizes()

	i := slices.Index(sizes, atOnce) + step
	if i < 0 || i >= len(sizes) {
		return 0
	}

	return sizes[i]
}

// otherMode is the mode that was not tried, where it may be better: also for two, where
// one alone was better than two in the wrong mode.
func otherMode(levels []level, chosen level, q Question) (berth.Company, bool) {
	atOnce := chosen.AtOnce
	if slices.ContainsFunc(levels, func(l level) bool { return l.Mode == chosen.Mode && l.AtOnce > 1 }) {
		atOnce = max(atOnce, 2)
	}

	if !q.Heavy || atOnce < 2 || atOnce > fewAtOnce || q.queue() < modeAhead*atOnce {
		return berth.Company{}, false
	}

	for _, mode := range q.Modes {
		other := berth.Company{Mode: mode, AtOnce: atOnce}
		if _, tried := bestIn(levels, mode); !tried && q.canBe(other, chosen.Company) {
			return other, true
		}
	}

	return berth.Company{}, false
}
