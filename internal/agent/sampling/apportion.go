package sampling

import (
	"maps"
	"slices"
	"sync"
	"time"
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

// departedFor is how long the processes of a container that has ended may still be in
// the driver's list, or in a reading that was made with them.
const departedFor = 10 * time.Second

// GPUActivity is how busy a whole GPU was until At: shares, 0 to 1. The zero value
// is not known.
type GPUActivity struct {
	At               time.Time
	SM, DRAM, Tensor float64
}

// Apportioner divides the measured activity of GPUs among the attempts there. A
// driver measures a GPU as a whole. What a shape takes of it follows from how the
// sum changes while attempts come and go: each reading corrects the estimates of
// the shapes that are there, the least known the most (a Kalman filter that keeps
// no covariances: shapes that always come and go together share alike).
//
// What a program outside Berth takes cannot be told from what attempts take: with one
// on the GPU nothing is known.
type Apportioner struct {
	mu      sync.Mutex
	gpus    map[string]*gpuParts
	watched map[string]watched // by container
}

// watched is a container that a Run of this worker watches, or did a moment ago.
type watched struct {
	deviceID string
	left     time.Time // zero = it is watched
}

// gpuParts is one GPU.
type gpuParts struct {
	at     time.Time          // of the last reading
	last   parts              // that reading
	were   map[string]float64 // attempts that were there then, by shape
	vain   bool               // that reading says nothing of the shapes: it was of a full GPU, or of one with a program outside Berth
	there  map[string]string  // shapes by attempt
	shapes map[string]estimate
	moves  int  // attempts that came or went since the last reading
	before int  // the same between the last two readings
	others bool // a program outside Berth was there since the last reading
	mixed  bool // the same between the last two readings
}

// mayMove is the part of the attempts on a GPU, as 1/n, that may come and go around a
// reading that corrects the estimates: such a reading is of a mixture.
const mayMove = 5

// parts are SM, DRAM and tensor cores.
type parts [3]float64

// Part is what of a GPU's activity is one attempt's.
type Part struct {
	parts parts
	known bool
	full  bool // others kept the GPU full: the attempt may need more
}

// estimate is what one attempt of a shape takes.
type estimate struct {
	parts    parts
	variance float64
}

// Tenant is an attempt on a GPU.
type Tenant struct{ DeviceID, AttemptID, ContainerID, Shape string }

// Divide returns what of a reading of a Tenant's GPU is the Tenant's. Beside are the
// containers whose processes are there, too (gpu.Use).
func (a *Apportioner) Divide(who Tenant, reading GPUActivity, beside []string) Part {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.gpus == nil {
		a.gpus = make(map[string]*gpuParts)
	}

	g := a.gpus[who.DeviceID]
	if g == nil {
		g = &gpuParts{there: make(map[string]string), shapes: make(map[string]estimate)}
		a.gpus[who.DeviceID] = g
	}

	if _, known := g.there[who.AttemptID]; !known {
		g.there[who.AttemptID] = who.Shape
		g.moves++
	}

	others := slices.ContainsFunc(beside, func(id string) bool { _, ours := a.watched[id]; return !ours && id != who.ContainerID })
	g.others = g.others || others

	whole := parts{reading.SM, reading.DRAM, reading.Tensor}
	full := len(g.there) > 1 && max(reading.SM, reading.DRAM) >= fullShare

	if reading.At.After(g.at) {
		if !g.vain && (g.moves+g.before)*mayMove <= len(g.there) {
			g.correct()
		}

		g.at, g.last, g.were, g.vain = reading.At, whole, g.counts(), full || g.others
		g.moves, g.before = 0, g.moves
		g.others, g.mixed = others, g.others
	}

	known, estimated := g.shapes[who.Shape]

	switch {
	case g.mixed || g.others:
		return Part{}
	case len(g.there) == 1:
		return Part{parts: whole, known: true}
	case full:
		return g.ofFull(whole, who.Shape)
	default:
		return Part{parts: known.parts, known: estimated}
	}
}

// counts are the attempts that are there, by shape.
func (g *gpuParts) counts() map[string]float64 {
	attempts := make(map[string]float64)
	for _, shape := range g.there {
		attempts[shape]++
	}

	return attempts
}

// ofFull is what an attempt of a shape has of a full GPU, where attempts slow each
// other down. Shapes that are known have what they are known to take, less by one
// factor when that is more than there is: company makes none of them need more. A
// shape that is not known, when there is only one, has what these leave, and so it
// needs that much at least. Of several nobody can tell which has how much.
func (g *gpuParts) ofFull(whole parts, shape string) Part {
	var taken parts

	attempts, unknown := g.counts(), 0

	for other, n := range attempts {
		known, estimated := g.shapes[other]
		if !estimated {
			unknown++
		}

		for i := range taken {
			taken[i] += n * known.parts[i]
		}
	}

	known, estimated := g.shapes[shape]
	if !estimated && unknown > 1 {
		return Part{}
	}

	own := Part{known: true, full: true}

	for i := range whole {
		switch {
		case len(attempts) == 1: // all need the same
			own.parts[i] = whole[i] / attempts[shape]
		case estimated && taken[i] > whole[i]:
			own.parts[i] = known.parts[i] * whole[i] / taken[i]
		case estimated:
			own.parts[i] = known.parts[i]
		default:
			own.parts[i] = max(whole[i]-taken[i], 0) / attempts[shape]
		}
	}

	return own
}

// correct moves the estimates of the shapes that were there towards the last reading.
func (g *gpuParts) correct() {
	for shape := range g.were {
		if _, known := g.shapes[shape]; !known {
			g.shapes[shape] = estimate{variance: unknownVariance}
		}
	}

	missed, variance := g.last, readingVariance

	for shape, n := range g.were {
		variance += n * n * g.shapes[shape].variance

		for i := range missed {
			missed[i] -= n * g.shapes[shape].parts[i]
		}
	}

	for shape, n := range g.were {
		known := g.shapes[shape]
		gain := known.variance * n / variance
		known.variance = known.variance*(1-gain*n) + driftVariance

		for i := range missed {
			known.parts[i] = max(known.parts[i]+gain*missed[i], 0)
		}

		g.shapes[shape] = known
	}
}

// Watch is told of a container whose Run watches it from now on.
func (a *Apportioner) Watch(deviceID, containerID string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.watched == nil {
		a.watched = make(map[string]watched)
	}

	a.watched[containerID] = watched{deviceID: deviceID}
}

// Company reports whether a Run of another container on the GPU watches it, or did a
// moment ago.
func (a *Apportioner) Company(deviceID, containerID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	for id, one := range a.watched {
		if id != containerID && one.deviceID == deviceID && (one.left.IsZero() || time.Since(one.left) < departedFor) {
			return true
		}
	}

	return false
}

// Unwatch is told that a Tenant's Run does not watch its container any more.
func (a *Apportioner) Unwatch(who Tenant) {
	a.Leave(who)

	a.mu.Lock()
	defer a.mu.Unlock()

	now := time.Now()
	a.watched[who.ContainerID] = watched{deviceID: who.DeviceID, left: now}
	maps.DeleteFunc(a.watched, func(_ string, one watched) bool { return !one.left.IsZero() && now.Sub(one.left) >= departedFor })
}

// Leave is told that a Tenant holds nothing of its GPU any more, or not yet.
func (a *Apportioner) Leave(who Tenant) {
	a.mu.Lock()
	defer a.mu.Unlock()

	g := a.gpus[who.DeviceID]
	if g == nil {
		return
	}

	if _, there := g.there[who.AttemptID]; there {
		delete(g.there, who.AttemptID)
		g.moves++
	}

	if len(g.there) == 0 { // what is known for long is in the shapes' footprints
		delete(a.gpus, who.DeviceID)
	}
}
