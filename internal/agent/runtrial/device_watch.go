package runtrial

import (
	"cmp"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// deviceWatch is what was measured of an attempt's GPU.
type deviceWatch struct {
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
	note    string        // what a person must know of how it used the GPU; empty = nothing

	coverage coverage
	covered  berth.Usage  // Unseen and SeenUntil are those of the GPU
	pids     map[int]bool // that were there while one of them started
	listed   bool         // a process was there whose amount is not known
	starting *berth.Usage // covered, with the readings while its process starts; nil = none does
	activity activityMean
}

func newDeviceWatch(c coverage, before berth.Usage) *deviceWatch {
	w := &deviceWatch{coverage: c, company: before.DeviceSamples > 0, partly: before.DeviceSamples > 0, covered: berth.Usage{Unseen: before.DeviceUnseen, SeenUntil: before.DeviceSeenUntil}}
	w.activity.resume(before)

	return w
}

// bytesAt is an amount of the GPU's memory, as read at a moment.
type bytesAt struct {
	at    time.Time
	bytes int64
}

func (w *deviceWatch) add(reading DeviceReading, at time.Time) {
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

func (w *deviceWatch) addFree(bytes int64, at time.Time) {
	w.free = append(w.free, bytesAt{at, bytes})

	for len(w.free) > 1 && at.Sub(w.free[0].at) > recentFree {
		w.free = w.free[1:]
	}
}

// unnamed notes a reading in which the driver does not say what the container's process
// holds: one that starts. With 32 at once on 16 cores that lasted more than 2 s, for 25 of
// 40 more than 5 s (one H200, 2026-11-25).
func (w *deviceWatch) unnamed(reading DeviceReading, at time.Time) {
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
		covered := w.covered
		w.starting, w.pids = &covered, make(map[int]bool)
	}

	for _, pid := range reading.PIDs {
		w.pids[pid] = true
	}

	w.coverage.seen(w.starting, at)
}

// seen notes that the container was seen to hold so much. Frameworks keep what they
// took, so the first amount that the driver names tells of the start, too. Of a process
// that has ended nothing tells.
func (w *deviceWatch) seen(reading DeviceReading, at time.Time) {
	for _, pid := range reading.PIDs {
		delete(w.pids, pid)
	}

	if w.starting != nil && reading.UsedBytes > 0 && len(w.pids) == 0 {
		w.covered = *w.starting
	}

	w.starting = nil
	w.coverage.seen(&w.covered, at)
}

// blinks notes the time since the last reading, by whichever worker.
func (w *deviceWatch) blinks(at time.Time) {
	from := w.covered.SeenUntil
	if from.IsZero() {
		from = w.coverage.startedAt
	}

	w.blink = max(w.blink, at.Sub(from))
}

// out notes that the GPU is out of order: for as long as its worker runs.
func (w *deviceWatch) out(problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.problem = cmp.Or(problem, w.problem)
}

// addActivity notes how busy the attempt kept its GPU until a reading.
func (w *deviceWatch) addActivity(own part, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.activity.add(own, at)
}

// noted keeps what a person must know.
func (w *deviceWatch) noted(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.note = why
}

// notes are what a person must know, for the attempt's message.
func (w *deviceWatch) notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.note == "" {
		return nil
	}

	return []string{w.note}
}

// joined notes that others are on the GPU.
func (w *deviceWatch) joined() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.company = true
}

// into adds what was measured to a usage that an earlier Run may have begun.
func (w *deviceWatch) into(u *berth.Usage, before berth.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()

	u.DevicePeakBytes = max(before.DevicePeakBytes, w.peak)
	u.DeviceSamples = before.DeviceSamples + w.samples
	u.DeviceUnseen, u.DeviceSeenUntil = w.covered.Unseen, w.covered.SeenUntil
	w.activity.into(u)
}

// end closes the account at the exit of the container.
func (w *deviceWatch) end(u *berth.Usage, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.blinks(at)
	w.covered.Wall = u.Wall

	// A short program may do all its work between two readings, when a worker dies there.
	if u.DevicePeakBytes == 0 && (w.listed || w.blink > time.Duration(u.Wall)/2) {
		w.covered.Unseen += berth.Duration(w.blink)
	}

	w.coverage.ended(&w.covered, at)
	u.DeviceUnseen, u.DeviceSeenUntil = w.covered.Unseen, time.Time{}
}

// leastFree is the least that the whole GPU had free of late.
func (w *deviceWatch) leastFree() (bytes int64, measured bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for i, f := range w.free {
		if i == 0 || f.bytes < bytes {
			bytes = f.bytes
		}
	}

	return bytes, len(w.free) > 0
}
