package runtrial

import (
	"math"
	"sync"
	"time"

	"github.com/berthml/berth"
)

const (
	// A shape that was never seen may take all of a GPU: its estimate has the variance
	// 1, in shares squared. Readings scatter by about 0.03, and what a shape takes
	// drifts by about 0.01 a second, as a program goes from one phase to the next.
	unknownVariance = 1
	readingVariance = 0.03 * 0.03
	driftVariance   = 0.01 * 0.01

	// fullShare of a GPU's SMs, or of its memory's bandwidth, and more is a GPU whose
	// attempts slow each other down: large matrix products and streams of memory that
	// gained at most 8 % from company kept it that busy (one H200, 2026-11-22).
	fullShare = 0.9
)

// GPUActivity is how busy a whole GPU was until At: shares, 0 to 1. The zero value
// is not known.
type GPUActivity struct {
	At               time.Time
	SM, DRAM, Tensor float64
}

// apportioner divides the measured activity of GPUs among the attempts there. A
// driver measures a GPU as a whole. What a shape takes of it follows from how the
// sum changes while attempts come and go: each reading corrects the estimates of
// the shapes that are there, the least known the most (a Kalman filter that keeps
// no covariances).
type apportioner struct {
	mu   sync.Mutex
	gpus map[string]*gpuParts
}

// gpuParts is one GPU.
type gpuParts struct {
	at     time.Time         // of the last reading
	last   parts             // that reading
	full   bool              // it was of a full GPU
	there  map[string]string // shapes by attempt
	shapes map[string]estimate
	moves  int // attempts that came or went since the last reading
	before int // the same between the last two readings
}

// mayMove is the part of the attempts on a GPU, as 1/n, that may come and go around a
// reading that corrects the estimates: such a reading is of a mixture.
const mayMove = 5

// parts are SM, DRAM and tensor cores.
type parts [3]float64

// estimate is what one attempt of a shape takes.
type estimate struct {
	parts    parts
	variance float64
}

// divide returns what of a reading is an attempt's. full = the GPU was, and others
// were there: the attempt may need more.
func (a *apportioner) divide(deviceID, attemptID, shape string, reading GPUActivity) (own parts, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.gpus == nil {
		a.gpus = make(map[string]*gpuParts)
	}

	g := a.gpus[deviceID]
	if g == nil {
		g = &gpuParts{there: make(map[string]string), shapes: make(map[string]estimate)}
		a.gpus[deviceID] = g
	}

	if _, known := g.there[attemptID]; !known {
		g.there[attemptID] = shape
		g.moves++
	}

	whole := parts{reading.SM, reading.DRAM, reading.Tensor}
	full = len(g.there) > 1 && max(reading.SM, reading.DRAM) >= fullShare

	if reading.At.After(g.at) {
		if !g.full && (g.moves+g.before)*mayMove <= len(g.there) {
			g.correct(g.last)
		}

		g.at, g.last, g.full = reading.At, whole, full
		g.moves, g.before = 0, g.moves
	}

	switch {
	case len(g.there) == 1:
		return whole, false
	case full: // each gets what the others leave
		for i := range whole {
			own[i] = whole[i] / float64(len(g.there))
		}

		return own, true
	default:
		return g.shapes[shape].parts, false
	}
}

// correct moves the estimates of the shapes that are there towards a reading.
func (g *gpuParts) correct(whole parts) {
	attempts := make(map[string]float64)

	for _, shape := range g.there {
		if _, known := g.shapes[shape]; !known {
			g.shapes[shape] = estimate{variance: unknownVariance}
		}

		attempts[shape]++
	}

	missed, variance := whole, readingVariance

	for shape, n := range attempts {
		variance += n * n * g.shapes[shape].variance

		for i := range missed {
			missed[i] -= n * g.shapes[shape].parts[i]
		}
	}

	for shape, n := range attempts {
		known := g.shapes[shape]
		gain := known.variance * n / variance
		known.variance = known.variance*(1-gain*n) + driftVariance

		for i := range missed {
			known.parts[i] = max(known.parts[i]+gain*missed[i], 0)
		}

		g.shapes[shape] = known
	}
}

// leave is told that an attempt holds nothing of its GPU any more.
func (a *apportioner) leave(deviceID, attemptID string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	g := a.gpus[deviceID]
	if g == nil {
		return
	}

	if _, there := g.there[attemptID]; there {
		delete(g.there, attemptID)
		g.moves++
	}

	if len(g.there) == 0 { // what is known for long is in the shapes' footprints
		delete(a.gpus, deviceID)
	}
}

// activityMean is the mean activity of an attempt, over the time that was measured.
type activityMean struct {
	alone, beside weighted      // on a GPU that had work to give, and on a full one
	total         time.Duration // that was measured, the runs before included
	at            time.Time
}

type weighted struct {
	sum  parts // times seconds
	time time.Duration
}

// leastActive is how long an attempt must be measured on a GPU that has room before
// that says more than the time on a full one.
const leastActive = 2 * time.Second

// add counts what was the attempt's until a reading.
func (m *activityMean) add(own parts, full bool, at time.Time) {
	took := min(at.Sub(m.at), gapAfter) // what nobody measured counts for nothing
	if m.at.IsZero() {
		took = 0
	}

	m.at = at

	w := &m.alone
	if full {
		w = &m.beside
	}

	w.time += took
	m.total += took

	for i := range own {
		w.sum[i] += own[i] * took.Seconds()
	}
}

// resume goes on from what an earlier Run measured.
func (m *activityMean) resume(u berth.Usage) {
	w := &m.alone
	if u.DeviceContended {
		w = &m.beside
	}

	w.time = time.Duration(u.DeviceActive)
	m.total = w.time

	for i, milli := range []int64{u.DeviceActivity.SMMilli, u.DeviceActivity.DRAMMilli, u.DeviceActivity.TensorMilli} {
		w.sum[i] = float64(milli) / berth.FullActivity * w.time.Seconds()
	}
}

// into says it in a usage.
func (m *activityMean) into(u *berth.Usage) {
	w := m.alone
	u.DeviceContended = w.time < leastActive && m.beside.time > 0

	if u.DeviceContended {
		w = m.beside
	}

	u.DeviceActive, u.DeviceActivity = berth.Duration(m.total), berth.DeviceActivity{}
	if w.time == 0 {
		return
	}

	milli := func(sum float64) int64 { return int64(math.Round(sum / w.time.Seconds() * berth.FullActivity)) }
	u.DeviceActivity = berth.DeviceActivity{SMMilli: milli(w.sum[0]), DRAMMilli: milli(w.sum[1]), TensorMilli: milli(w.sum[2])}
}
