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
	// plentiful is how many values of a number make a repeated draw too rare to
	// look for: a sweep of 1,000 trials draws one twice with chance 1 in 2,000.
	plentiful = 1e9
	// drawDigits is how many digits of a drawn float count.
	drawDigits = 12
)

// nextRandom draws the trials after the first made ones. No assignment comes
// twice. When chance keeps falling on old ones in a space small enough, it is
// cast among those that are left, so the last ones are found too. stop says
// why there are fewer than limit.
func (s *Searcher) nextRandom(made int, seen Seen, limit int) (out []berth.Assignment, stop End) {
	d := &drawer{Searcher: s, seen: seen, batch: map[string]bool{}}

	for len(out) < limit {
		a, end := d.next(made + len(out))

		switch {
		case end == EndNone:
			out = append(out, a)
		case end == EndDraws && len(out) > 0:
			return out, EndNone // the next call has all draws for the next trial
		default:
			return out, end
		}
	}

	return out, EndNone
}

// drawer is one call of nextRandom.
type drawer struct {
	*Searcher

	seen   Seen
	batch  map[string]bool // keys drawn in this call
	draws  int             // made in this call
	left   []int64         // points not tried, ascending, once walked
	walked bool
}

// next draws the assignment of one trial; another end than EndNone says why
// there is none.
func (d *drawer) next(number int) (berth.Assignment, End) {
	sp := d.space
	small := sp.finite && sp.points <= maxWalk
	a := berth.Assignment{}

	for try := 0; small || d.draws < drawsInAll; try++ {
		if small && try == drawsBeforeWalk {
			return d.fromLeft(number)
		}

		d.draws++

		clear(a)

		point, v := sp.draw(source(d.spec.Search.Seed, number, try), a)
		if v.ok() && d.take(a, point) {
			return a, EndNone
		}
	}

	return nil, EndDraws
}

// take notes an assignment unless it was tried before.
func (d *drawer) take(a berth.Assignment, point int64) bool {
	key := a.Key()
	if d.old(key) {
		return false
	}

	d.batch[key] = true

	if i, found := slices.BinarySearch(d.left, point); found {
		d.left = slices.Delete(d.left, i, i+1)
	}

	return true
}

func (d *drawer) old(key string) bool {
	_, seen := d.seen[key]

	return seen || d.enqueued[key] || d.batch[key]
}

// fromLeft casts the lot among the points that are left.
func (d *drawer) fromLeft(number int) (berth.Assignment, End) {
	if !d.walked {
		d.walked = true

		d.space.walk(func(point int64, a berth.Assignment) bool {
			if !d.old(a.Key()) {
				d.left = append(d.left, point)
			}

			return true
		})
	}

	if len(d.left) == 0 {
		return nil, EndSpace
	}

	lot := source(d.spec.Search.Seed, number, drawsBeforeWalk).IntN(len(d.left))
	point, a := d.left[lot], berth.Assignment{}

	d.space.at(point, a)
	d.take(a, point)

	return a, EndNone
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

// draw fills a with random values and says whether it may be tried. point
// is its number in a finite space.
func (sp *space) draw(random *rand.Rand, a berth.Assignment) (point int64, v verdict) {
	v = sp.fill(a, func(st step) berth.Value {
		d := &sp.searched[st.dim]
		if !d.finite {
			return berth.FloatValue(d.drawFloat(random))
		}

		i := d.drawIndex(random)
		point += i * d.stride

		return d.Point(sp.algorithm, i)
	})

	return point, v
}

// drawFloat is uniform over the range, or over its logarithm. It keeps 12
// digits, so that processors which differ in the last bit of exp or of a fused
// multiply-add still draw the same value.
func (d *dim) drawFloat(random *rand.Rand) float64 {
	low, high := *d.Min, *d.Max
	part := random.Float64()
	v := low + part*(high-low)

	if d.Log {
		v = math.Exp(math.Log(low) + part*(math.Log(high)-math.Log(low)))
	}

	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', drawDigits, 64), 64); err == nil {
		v = rounded
	}

	return min(max(v, low), high)
}

// plenty says whether drawFloat can yield plentiful values.
func (d *dim) plenty() bool {
	if d.finite {
		return false
	}

	most := max(math.Abs(*d.Min), math.Abs(*d.Max))
	apart := math.Pow(10, math.Floor(math.Log10(most))-drawDigits+1)

	return (*d.Max-*d.Min)/apart >= plentiful
}

// drawIndex is the number of a point: by its probability for a choice,
// otherwise uniform over the points, or over the logarithm of whole numbers,
// of which each owns the range half a unit to either side.
func (d *dim) drawIndex(random *rand.Rand) int64 {
	switch {
	case len(d.Probabilities) > 0:
		at := random.Float64()
		for i, p := range d.Probabilities {
			if at -= p; at < 0 {
				return int64(i)
			}
		}

		return d.points - 1
	case d.Log && d.Step == nil:
		low, high := math.Log(*d.Min-0.5), math.Log(*d.Max+0.5)
		v := math.Round(math.Exp(low + random.Float64()*(high-low)))

		return int64(min(max(v-*d.Min, 0), float64(d.points-1)))
	default:
		return random.Int64N(d.points)
	}
}
