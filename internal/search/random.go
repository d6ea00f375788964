package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/berthml/berth"
)

const (
	drawsBeforeWalk = 100 // then a space small enough is enumerated
	// drawsInAll bounds the draws of one call, 0.2 s with one forbid condition
	// (2 cores, 2026-11-22). A combination that one draw in
	// 20,000 hits is missed by all of them once in 150 trials.
	drawsInAll = 100_000
	// drawsApart is how many numbers of the first stream belong to one trial.
	// Later draws take further streams.
	drawsApart = 10_000
	// drawsAtOnce is how many draws are looked up together once the first of a trial
	// was an old one: a half tried space takes one look more, and a nearly full one
	// five, until it is enumerated. It divides drawsBeforeWalk.
	drawsAtOnce = 20
	// drawDigits is how many digits of a drawn float count.
	drawDigits = 12
)

// nextDrawn makes the trials after the first made ones, by lot, evenly or by a model. No
// assignment comes twice. When draws keep hitting old ones in a space small enough, it draws
// from the untried rest, so the last ones are found too. stop says why there are fewer than
// limit.
func (s *Searcher) nextDrawn(tried berth.Tried, limit int) (out []Suggestion, stop End, err error) {
	d := &drawer{Searcher: s, tried: tried, batch: map[string]bool{}}
	if s.spec.Search.Learns() {
		d.past = s.observe(tried.Past, tried.Prior)
	}

	for len(out) < limit {
		suggestion, end, err := d.suggest(tried.Made + len(out))

		switch {
		case err == nil && end == EndNone:
			out = append(out, suggestion)
		case err == nil && end == EndDraws && len(out) > 0:
			return out, EndNone, nil // the next call has all draws for the next trial
		default:
			return out, end, err
		}
	}

	return out, EndNone, nil
}

// drawer is one call of nextDrawn.
type drawer struct {
	*Searcher

	tried  berth.Tried
	past   *past           // of a search that learns; else nil
	batch  map[string]bool // keys drawn in this call
	draws  int             // made in this call
	left   []int64         // points not tried, ascending, once walked
	walked bool
}

// candidate is a draw that may be tried, unless it was.
type candidate struct {
	berth.Assignment

	key   string
	point int64
	draws int // of its look, up to this one
}

// next draws the assignment of one trial; another end than EndNone is the
// reason for none.
func (d *drawer) next(number int) (berth.Assignment, End, error) {
	small := d.space.finite && d.space.points <= maxWalk
	most := 1 // mostly the first is new

	for try := 0; small || d.draws < drawsInAll; try, most = try+most, drawsAtOnce-(try+most)%drawsAtOnce {
		if small && try == drawsBeforeWalk {
			return d.fromLeft(number)
		}

		if !small {
			most = min(most, drawsInAll-d.draws)
		}

		drawn, seen, err := d.look(number, try, most)
		if err != nil {
			return nil, EndNone, err
		}

		for _, c := range drawn {
			if !seen[c.key] && d.take(c) {
				d.draws += c.draws

				return c.Assignment, EndNone, nil
			}
		}

		d.draws += most
	}

	return nil, EndDraws, nil
}

// look makes draws from one on, and says which of their keys were tried by earlier calls.
func (d *drawer) look(number, try, most int) (drawn []candidate, seen map[string]bool, err error) {
	var keys []string

	for i := range most {
		a := berth.Assignment{}

		point, excluded := d.space.draw(d.parts(number, try+i), a)
		if excluded == nil {
			drawn = append(drawn, candidate{Assignment: a, key: a.Key(), point: point, draws: i + 1})
			keys = append(keys, drawn[len(drawn)-1].key)
		}
	}

	if len(keys) > 0 && d.tried.Seen != nil {
		seen, err = d.tried.Seen(keys)
	}

	return drawn, seen, err
}

// take notes an assignment unless this call drew it before, or it is enqueued.
func (d *drawer) take(c candidate) bool {
	if d.enqueued[c.key] || d.batch[c.key] {
		return false
	}

	d.batch[c.key] = true

	if i, found := slices.BinarySearch(d.left, c.point); found {
		d.left = slices.Delete(d.left, i, i+1)
	}

	return true
}

// fromLeft casts the lot among the points that are left.
func (d *drawer) fromLeft(number int) (berth.Assignment, End, error) {
	if !d.walked {
		if err := d.walk(); err != nil {
			return nil, EndNone, err
		}
	}

	if len(d.left) == 0 {
		return nil, EndSpace, nil
	}

	lot := source(d.spec.Search.Seed, number, drawsBeforeWalk).IntN(len(d.left))
	point, a := d.left[lot], berth.Assignment{}

	d.space.at(point, a)
	d.take(candidate{key: a.Key(), point: point})

	return a, EndNone, nil
}

// walk fills left.
func (d *drawer) walk() (err error) {
	var seen map[string]bool

	if d.walked = true; d.tried.Seen != nil {
		if seen, err = d.tried.Seen(nil); err != nil {
			return err
		}
	}

	d.space.walk(0, func(point int64, a berth.Assignment) bool {
		if key := a.Key(); !seen[key] && !d.enqueued[key] && !d.batch[key] {
			d.left = append(d.left, point)
		}

		return true
	})

	return nil
}

// source is the random numbers of one draw for one trial.
func source(seed int64, number, try int) *rand.Rand {
	stream, place := uint64(try/drawsApart), uint64(try%drawsApart) //nolint:gosec // G115: neither is negative

	return rand.New(rand.NewPCG(mix(uint64(seed))+stream, mix(uint64(number)*drawsApart+place))) //nolint:gosec // a search, not a secret
}

// mix spreads neighbouring numbers over all 64 bits (the finalizer of SplitMix64,
// Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb

	return x ^ x>>31
}

// parts are the numbers in [0, 1) of one draw for one trial, by searched parameter: random
// ones; for the first draw of an adaptive or sobol search those of Sobol's sequence, with the
// corners first.
func (s *Searcher) parts(number, try int) func(dim int) float64 {
	random := source(s.spec.Search.Seed, number, try)
	if try > 0 || s.spec.Search.Algorithm == berth.SearchRandom {
		return func(int) float64 { return random.Float64() }
	}

	return func(dim int) float64 {
		if c, marked := s.corners[dim]; marked && number-s.listed < s.cornered {
			return c.part(number - s.listed)
		}

		shift := uint32(mix(mix(uint64(s.spec.Search.Seed))+uint64(dim)) >> sobolBits) //nolint:gosec // G115: the higher half
		if at, ok := sobol(number-s.listed, dim, shift); ok {
			return at
		}

		return random.Float64()
	}
}

// draw fills a with the values at parts. point is its number in a finite space; the error is
// fill's.
func (sp *space) draw(parts func(dim int) float64, a berth.Assignment) (point int64, err error) {
	err = sp.fill(a, func(st step) berth.Value {
		d, part := &sp.searched[st.dim], parts(st.dim)
		if !d.finite {
			return berth.FloatValue(d.floatAt(part))
		}

		i := d.indexAt(part)
		point += i * d.stride

		return d.Point(sp.algorithm, i)
	})

	return point, err
}

// floatAt is uniform over the range, or over its logarithm.
func (d *dim) floatAt(part float64) float64 {
	low, high := *d.Min, *d.Max
	if d.Log {
		return d.rounded(math.Exp(math.Log(low) + part*(math.Log(high)-math.Log(low))))
	}

	return d.rounded(low + part*(high-low))
}

// rounded keeps 12 digits, so that processors which differ in the last bit of exp or of a
// fused multiply-add still suggest the same value, and the bounds.
func (d *dim) rounded(v float64) float64 {
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', drawDigits, 64), 64); err == nil {
		v = rounded
	}

	return min(max(v, *d.Min), *d.Max)
}

// indexAt is the number of a point: by its probability for a choice, otherwise uniform over
// the points, or over the logarithm of whole numbers; each owns the range half a unit to
// either side.
func (d *dim) indexAt(part float64) int64 {
	switch {
	case len(d.Probabilities) > 0:
		for i, p := range d.Probabilities {
			if part -= p; part < 0 {
				return int64(i)
			}
		}

		return d.points - 1
	case d.Log && d.Step == nil:
		low, high := math.Log(*d.Min-0.5), math.Log(*d.Max+0.5)
		v := math.Round(math.Exp(low + part*(high-low)))

		return int64(min(max(v-*d.Min, 0), float64(d.points-1)))
	default:
		return min(int64(part*float64(d.points)), d.points-1)
	}
}
