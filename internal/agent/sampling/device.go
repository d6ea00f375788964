package sampling

import (
	"cmp"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// recentFree is how far back the least free memory of a GPU counts as what the
// job met when it failed: TensorFlow tries an allocation for 10 s before it gives
// up (bfc_allocator.cc).
const recentFree = 10 * time.Second

// DeviceReading is what a container and its GPU hold at one moment.
type DeviceReading struct {
	At        time.Time // of the reading, which attempts of a GPU share; zero = now
	UsedBytes int64     // of the GPU's memory, by the container's processes
	FreeBytes int64     // of the whole GPU
	Unshared  bool      // a process of the container is no client of the GPU's MPS daemon
	Unnamed   bool      // beside an error: the driver does not say what a process of the container holds
	Activity  GPUActivity
	Beside    []string // containers whose processes are on the GPU, too; an empty one = processes that are in none
	Problem   string   // why the GPU itself is out of order, also beside an error; empty = it works
	Lost      bool     // no attempt there can go on
}

// DeviceWatch is what was measured of an attempt's GPU.
type DeviceWatch struct {
	mu      sync.Mutex
	peak    int64
	samples int
	free    []bytesAt     // of the last recentFree
	held    []bytesAt     // what it held, from each change on; at most mostChanges
	partly  bool          // an earlier run has seen a part of it
	blink   time.Duration // the longest time between two readings, from its start to its end
	last    time.Time     // of the newest reading
	problem string        // of the GPU, as said last
	company bool          // others were, or may have been, on the GPU while it ran

	coverage Coverage
	covered  berth.Usage  // Unseen and SeenUntil are those of the GPU
	listed   bool         // a process was there whose amount is not known
	starting *berth.Usage // covered, with the readings while its process starts; nil = none does
	activity activityMean
}

// NewDeviceWatch goes on from what earlier Runs measured.
func NewDeviceWatch(c Coverage, before berth.Usage) *DeviceWatch {
	w := &DeviceWatch{coverage: c, company: before.DeviceSamples > 0, partly: before.DeviceSamples > 0, covered: berth.Usage{Unseen: before.DeviceUnseen, SeenUntil: before.DeviceSeenUntil}}
	w.activity.resume(before)

	return w
}

// bytesAt is an amount of the GPU's memory, as read at a moment.
type bytesAt struct {
	at    time.Time
	bytes int64
}

// Add takes in a reading in which the driver says what the container holds.
func (w *DeviceWatch) Add(reading DeviceReading, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if !at.After(w.last) { // it was added: several questions share a reading
		return
	}

	w.blinks(at)
	w.last = at
	w.peak = max(w.peak, reading.UsedBytes)
	w.samples++

	if n := len(w.held); (n == 0 || w.held[n-1].bytes != reading.UsedBytes) && n < mostChanges {
		w.held = append(w.held, bytesAt{at, reading.UsedBytes})
	}

	w.seen(reading, at)
	w.addFree(reading.FreeBytes, at)
}

func (w *DeviceWatch) addFree(bytes int64, at time.Time) {
	w.free = append(w.free, bytesAt{at, bytes})

	for len(w.free) > 1 && at.Sub(w.free[0].at) > recentFree {
		w.free = w.free[1:]
	}
}

// Unnamed notes a reading in which the driver does not say what the container's process
// holds: one that starts. With 32 at once on 16 cores that lasted more than 2 s, for 25 of
// 40 more than 5 s (one H200, 2026-11-25).
func (w *DeviceWatch) Unnamed(reading DeviceReading, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.listed = true
	w.peak = max(w.peak, reading.UsedBytes) // what the driver named is a part of it

	if reading.FreeBytes > 0 && (len(w.free) == 0 || at.After(w.free[len(w.free)-1].at)) {
		w.addFree(reading.FreeBytes, at)
	}

	if w.partly {
		return
	}

	if w.starting == nil {
		w.starting = new(w.covered)
	}

	w.coverage.Seen(w.starting, at)
}

// seen notes that the container was seen to hold so much. Frameworks keep what they
// took, so the first amount that the driver names tells of the start, too.
func (w *DeviceWatch) seen(reading DeviceReading, at time.Time) {
	if w.starting != nil && reading.UsedBytes > 0 {
		w.covered = *w.starting
	}

	w.starting = nil
	w.coverage.Seen(&w.covered, at)
}

// blinks notes the time since the last reading, by whichever worker.
func (w *DeviceWatch) blinks(at time.Time) {
	from := w.covered.SeenUntil
	if from.IsZero() {
		from = w.coverage.StartedAt
	}

	w.blink = max(w.blink, at.Sub(from))
}

// Out notes that the GPU is out of order: for as long as its worker runs.
func (w *DeviceWatch) Out(problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.problem = cmp.Or(problem, w.problem)
}

// AddActivity notes how busy the attempt kept its GPU until a reading.
func (w *DeviceWatch) AddActivity(own Part, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.activity.add(own, at)
}

// Joined notes that others are on the GPU.
func (w *DeviceWatch) Joined() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.company = true
}

// Into adds what was measured to a usage that an earlier Run may have begun.
func (w *DeviceWatch) Into(u *berth.Usage, before berth.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()

	u.DevicePeakBytes = max(before.DevicePeakBytes, w.peak)
	u.DeviceSamples = before.DeviceSamples + w.samples
	u.DeviceUnseen, u.DeviceSeenUntil = w.covered.Unseen, w.covered.SeenUntil
	w.activity.into(u)
}

// End closes the account at the exit of the container.
func (w *DeviceWatch) End(u *berth.Usage, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.blinks(at)
	w.covered.Wall = u.Wall

	// A short program may do all its work between two readings, when a worker dies there.
	if u.DevicePeakBytes == 0 && (w.listed || w.blink > time.Duration(u.Wall)/2) {
		w.covered.Unseen += berth.Duration(w.blink)
	}

	w.coverage.Ended(&w.covered, at)
	u.DeviceUnseen, u.DeviceSeenUntil = w.covered.Unseen, time.Time{}
}

// LeastFree is the least that the whole GPU had free of late.
func (w *DeviceWatch) LeastFree() (bytes int64, measured bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for i, f := range w.free {
		if i == 0 || f.bytes < bytes {
			bytes = f.bytes
		}
	}

	return bytes, len(w.free) > 0
}

// HeldFor is the most that the attempt held; 0 while the driver does not say it all, or where
// it has changed within so long.
func (w *DeviceWatch) HeldFor(long time.Duration) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()

	if n := len(w.held); w.starting != nil || n == 0 || w.last.Sub(w.held[n-1].at) < long {
		return 0
	}

	return w.peak
}

// State is what the GPU's last problem was, empty = none, and whether others were, or may have
// been, on it while the attempt ran.
func (w *DeviceWatch) State() (problem string, company bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.problem, w.company
}
