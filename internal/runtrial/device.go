package runtrial

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// lastWordFor is how long the end of an attempt waits for what is known of its GPU.
const lastWordFor = 2 * time.Second

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
	PIDs      []int     // of the container's processes there
	Unnamed   bool      // beside an error: the driver does not say what a process of the container holds
	Activity  GPUActivity
	Beside    []string // containers whose processes are on the GPU, too; an empty one = processes that are in none
	Problem   string   // why the GPU itself is out of order, also beside an error; empty = it works
	Lost      bool     // no attempt there can go on
}

// ReadDevice reads the GPU of a running container.
type ReadDevice func(ctx context.Context, c berth.Container, deviceID string) (DeviceReading, error)

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

// sampleDevice reads the GPU until the container has ended. That it cannot be
// read ends no attempt: its usage then says zero samples. It has a loop of its
// own, as a driver that hangs must not hold up the readings of host memory.
// It tells on lost when the attempt cannot go on there.
func (r *run) sampleDevice(ctx context.Context, exited <-chan struct{}, w *deviceWatch, lost chan<- struct{}) error {
	id := r.who.Attempt.DeviceID
	if id == "" || r.config.Device == nil {
		return nil
	}

	who := tenant{deviceID: id, attemptID: r.who.Attempt.ID, containerID: r.container.ID, shape: r.who.Trial.ShapeKey}
	r.activity.watch(id, who.containerID)

	defer r.activity.unwatch(who)

	ticker := time.NewTicker(r.config.SampleEvery)
	defer ticker.Stop()

	measured, shared := doubts{patience: deviceDoubt}, doubts{patience: deviceDoubt}

	for {
		select { // of a container that is gone a reading says nothing, but for the GPU's own problem
		case <-exited:
			r.lastWord(ctx, w)

			return nil
		default:
		}

		reading, err := r.config.Device(ctx, r.container, id)
		if ctx.Err() != nil {
			return nil
		}

		if err == nil {
			w.add(reading, cmp.Or(reading.At, time.Now()))
			r.apportion(who, reading, w)
		}

		if reading.Unnamed {
			w.unnamed(reading, cmp.Or(reading.At, time.Now()))
		}

		if len(reading.Beside) > 0 || r.activity.company(id, who.containerID) {
			w.joined()
		}

		w.out(reading.Problem)

		if reading.Lost {
			close(lost)

			return nil
		}

		if measured.last(unmeasured(err), time.Now()) {
			r.log.Warn(unmeasured(err), "attempt", r.who.Attempt.ID, "device", id, "error", err)
		}

		if why := r.unshared(reading, err); shared.last(why, time.Now()) {
			r.log.Warn(why, "attempt", r.who.Attempt.ID, "device", id)
			w.noted(why)
		}

		select {
		case <-ticker.C:
		case <-exited:
			r.lastWord(ctx, w)

			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// lastWord asks whether the GPU is out of order after the container's end: a program
// that its GPU takes down ends within milliseconds of that.
func (r *run) lastWord(ctx context.Context, w *deviceWatch) {
	ctx, cancel := context.WithTimeout(ctx, lastWordFor)
	defer cancel()

	reading, _ := r.config.Device(ctx, r.container, r.who.Attempt.DeviceID) // it has its problem beside an error
	w.out(reading.Problem)
}

// apportion notes what the attempt causes of its GPU's activity, while it holds
// something there.
func (r *run) apportion(who tenant, reading DeviceReading, w *deviceWatch) {
	switch {
	case reading.UsedBytes == 0:
		r.activity.leave(who)
	case !reading.Activity.At.IsZero():
		w.addActivity(r.activity.divide(who, reading.Activity, reading.Beside), reading.Activity.At)
	}
}

// deviceDoubt is how long something must be wrong with the readings of a GPU before
// it is logged: a process that starts or ends holds nothing that the driver can name,
// or is in one of its lists alone.
const deviceDoubt = 5 * time.Second

// unmeasured says that the attempt's GPU cannot be read; empty = it can.
func unmeasured(err error) string {
	if err == nil {
		return ""
	}

	return "cannot measure the GPU of the attempt"
}

// unshared says that the attempt does not share its GPU as it should; empty = it does,
// as far as is known.
func (r *run) unshared(reading DeviceReading, err error) string {
	if err != nil || !reading.Unshared || r.who.Attempt.Class.Mode() != berth.SharingMPS {
		return ""
	}

	return "a process of the attempt did not share its GPU by MPS, as it should: it took turns with the others, and nothing bounded its memory; " +
		"let neither its image nor its program set CUDA_MPS_PIPE_DIRECTORY"
}

// doubts tells what lasts from what passes.
type doubts struct {
	patience time.Duration
	why      string
	since    time.Time
	said     bool
}

// last reports, once, that the same has been wrong for as long as patience lasts.
func (d *doubts) last(why string, now time.Time) bool {
	if why != d.why {
		d.why, d.since = why, now
	}

	if why == "" || d.said || now.Sub(d.since) < d.patience {
		return false
	}

	d.said = true

	return true
}

// deviceEvidence is what is known of the attempt's GPU; zero without one.
func (r *run) deviceEvidence(seen observation) failure.DeviceEvidence {
	if r.who.Attempt.DeviceID == "" {
		return failure.DeviceEvidence{}
	}

	free, measured := seen.device.leastFree()
	seen.device.mu.Lock()
	problem, company := seen.device.problem, seen.device.company
	seen.device.mu.Unlock()

	u, demand := seen.usage, r.who.Attempt.Demand
	byMPS := r.who.Attempt.Class.Mode() == berth.SharingMPS

	return failure.DeviceEvidence{
		Asked: true, Must: r.who.Spec.Resources.Device == berth.DeviceGPU,
		Measured: u.DevicePeakBytes > 0 || u.DeviceMeasured(), PeakBytes: u.DevicePeakBytes, LimitBytes: demand.DeviceBytes + demand.SpillBytes,
		MPS: byMPS, Shared: byMPS && !demand.ExclusiveDevice,
		Alone:        demand.ExclusiveDevice || u.DeviceMeasured() && !company,
		Problem:      problem,
		NoGPU:        seen.tail.noGPU,
		FreeMeasured: measured && demand.SpillBytes == 0, // unified memory fills a GPU, and is no sign of a neighbour
		FreeBytes:    free, Stepped: seen.metrics.any(),
	}
}
