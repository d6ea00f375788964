package sampling

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// fullShare of a GPU's SMs, or of its memory's bandwidth, and more is a GPU whose
// attempts slow each other down: large matrix products and streams of memory that
// gained at most 8 % from company kept it that busy (one H200, 2026-11-22).
const fullShare = 0.9

// departedFor is how long the processes of a container that has ended may still be in
// the driver's list, or in a reading that was made with them.
const departedFor = 10 * time.Second

// GPUActivity is how busy a whole GPU was until At: shares, 0 to 1. The zero value
// is not known.
type GPUActivity struct {
	At               time.Time
	SM, DRAM, Tensor float64
}

// Apportioner says what of the measured activity of GPUs is an attempt's. A driver
// measures a GPU as a whole: attempts of one shape have the same part each. What
// several shapes, or a program outside Berth, take at once is not told apart.
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
	at     time.Time         // of the last reading
	there  map[string]string // shapes by attempt
	mixed  bool              // several shapes, or a program outside Berth, were there since the last reading
	before bool              // the same between the last two readings
}

// parts are SM, DRAM and tensor cores.
type parts [3]float64

// Part is what of a GPU's activity is one attempt's.
type Part struct {
	parts parts
	known bool
	full  bool // others kept the GPU full: the attempt may need more
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
		g = &gpuParts{there: make(map[string]string)}
		a.gpus[who.DeviceID] = g
	}

	g.there[who.AttemptID] = who.Shape
	mixed := slices.ContainsFunc(beside, func(id string) bool { _, ours := a.watched[id]; return !ours && id != who.ContainerID })

	for _, shape := range g.there {
		mixed = mixed || shape != who.Shape
	}

	g.mixed = g.mixed || mixed

	if reading.At.After(g.at) {
		g.at, g.mixed, g.before = reading.At, mixed, g.mixed
	}

	if g.mixed || g.before {
		return Part{}
	}

	n := float64(len(g.there))

	return Part{
		parts: parts{reading.SM / n, reading.DRAM / n, reading.Tensor / n}, known: true,
		full: n > 1 && max(reading.SM, reading.DRAM) >= fullShare,
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

	delete(g.there, who.AttemptID)

	if len(g.there) == 0 {
		delete(a.gpus, who.DeviceID)
	}
}
