package runtrial

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

// memoryEvery is how often the worker stores what an attempt held over time: one
// statement for each attempt.
const memoryEvery = 10 * time.Second

// traceName is the file that keeps what an attempt held over time, as far as the
// database lacks it: 50 KB at most.
const traceName = "trace.json"

// trace is what an attempt held over time, as far as the database lacks it. It is thinned
// as it grows, so it stays small while the database is away.
type trace struct {
	opened time.Time     // by the monotonic clock, as the times of samples are
	age    time.Duration // of the attempt when the trace was opened

	mu     sync.Mutex
	points []berth.MemoryPoint // ascending, one for each interval
	newest int                 // second of the newest sample; it decides how long the intervals are

	changed bool // since it was written down
}

// keptTrace is a trace when it was last written down.
type keptTrace struct {
	Container string              `json:"container"` // its id
	Newest    int                 `json:"newest"`    // second of the newest sample
	Points    []berth.MemoryPoint `json:"points"`
}

// newTrace goes on from what an earlier Run wrote down. It compares the wall clock with
// Docker's time once: a step of the clock moves no later sample into the past. A zero
// startedAt means that the start is not known: the attempt begins now.
func newTrace(startedAt time.Time, kept keptTrace) *trace {
	t := &trace{opened: time.Now(), points: kept.Points, newest: kept.Newest}

	if !startedAt.IsZero() {
		t.age = t.opened.Sub(startedAt)
	}

	// The clock may have been set back since the earlier Run.
	t.age = max(t.age, time.Duration(kept.Newest)*time.Second)

	return t
}

// addHost notes the container's working set.
func (t *trace) addHost(bytes int64, at time.Time) { t.add(at, berth.MemoryPoint{HostBytes: &bytes}) }

// addDevice notes what the container holds of its GPU's memory.
func (t *trace) addDevice(bytes int64, at time.Time) {
	t.add(at, berth.MemoryPoint{DeviceBytes: &bytes})
}

// addActivity notes what the attempt causes of its GPU's activity.
func (t *trace) addActivity(own part, at time.Time) {
	if own.known { // the estimate of a part may be a little more than there is
		t.add(at, berth.MemoryPoint{SMMilli: new(min(max(int64(own.parts[0]*berth.FullActivity+0.5), 0), berth.FullActivity))})
	}
}

func (t *trace) add(at time.Time, p berth.MemoryPoint) {
	t.mu.Lock()
	defer t.mu.Unlock()

	// PostgreSQL keeps the second in 32 bits.
	p.Second = int(min(max((t.age+at.Sub(t.opened))/time.Second, 0), math.MaxInt32))
	t.newest = max(t.newest, p.Second)
	t.points = timeline.ThinMemory(append(t.points, p), timeline.MemoryInterval(t.newest))
	t.changed = true
}

// storable returns what the database lacks, but an interval that began within the newest
// second: its GPU may not have been read yet. The trace keeps all of it until stored.
func (t *trace) storable() []berth.MemoryPoint {
	t.mu.Lock()
	defer t.mu.Unlock()

	end := len(t.points)
	if end > 0 && t.points[end-1].Second == t.newest {
		end--
	}

	return slices.Clone(t.points[:end])
}

// stored forgets points that the database has now, but those that have grown since.
func (t *trace) stored(points []berth.MemoryPoint) {
	t.mu.Lock()
	defer t.mu.Unlock()

	had := make(map[berth.MemoryPoint]bool, len(points)) // by figure's address: a larger one has another
	for _, p := range points {
		had[p] = true
	}

	t.points = slices.DeleteFunc(t.points, func(p berth.MemoryPoint) bool { return had[p] })
	t.changed = true
}

// rest returns all that the database lacks.
func (t *trace) rest() []berth.MemoryPoint {
	t.mu.Lock()
	defer t.mu.Unlock()

	return slices.Clone(t.points)
}

// kept is the trace to be written down; changed is false when it was, as it is.
func (t *trace) kept(container string) (k keptTrace, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	changed, t.changed = t.changed, false

	return keptTrace{Container: container, Newest: t.newest, Points: slices.Clone(t.points)}, changed
}

// keepTrace writes a trace down. Like usage it is not synced: a power cut ends the
// container as well.
func (d dirs) keepTrace(k keptTrace) error {
	return writeJSON(filepath.Join(d.attempt, traceName), "what the attempt held over time", k)
}

// trace is what was written down of a container; zero when nothing was. An empty id
// stands for whatever container the attempt had.
func (d dirs) trace(container string) keptTrace {
	var kept keptTrace
	if !readJSON(filepath.Join(d.attempt, traceName), &kept) || container != "" && kept.Container != container {
		return keptTrace{}
	}

	return kept
}

// unstored is what the database lacks of what the attempt held over time, by this Run and
// those before.
func (r *run) unstored() []berth.MemoryPoint {
	if r.trace == nil { // this Run has watched no container
		return r.dirs.trace(r.container.ID).Points
	}

	return r.trace.rest()
}

// keepMemory stores what the attempt held over time, now and then, until its container has
// exited; what is left then is part of the verdict. While the database is away, what waits
// is also on disk for the Run that adopts the container: a worker that is killed loses
// keepUsageEvery of it at most. Errors: fenced.
func (r *run) keepMemory(ctx context.Context, exited <-chan struct{}) error {
	store, keep := time.NewTicker(memoryEvery), time.NewTicker(keepUsageEvery)
	defer store.Stop()
	defer keep.Stop()

	for {
		select {
		case <-store.C:
			if err := r.putMemory(ctx); err != nil {
				return err
			}
		case <-keep.C:
			r.keepTrace()
		case <-exited:
			return nil
		case <-ctx.Done():
			r.keepTrace() // at once, whatever still waits for Docker

			return nil
		}
	}
}

// putMemory stores what the database lacks. What it can never store is dropped; the rest
// waits for the next time. Errors: fenced.
func (r *run) putMemory(ctx context.Context) error {
	points := r.trace.storable()
	if len(points) == 0 {
		return nil
	}

	err := r.storable(r.records.PutMemory(ctx, r.who.Attempt.ID, r.order.Token, points))

	switch {
	case err == nil:
		r.trace.stored(points)
	case berth.KindOf(err) == berth.KindFenced:
		return err
	case ctx.Err() == nil:
		r.log.Warn("storing what the attempt held over time; trying again", "attempt", r.who.Attempt.ID, "error", err)
	}

	return nil
}

// keepTrace writes down what the database lacks of what the attempt held over time.
func (r *run) keepTrace() {
	kept, changed := r.trace.kept(r.container.ID)
	if !changed {
		return
	}

	if err := r.dirs.keepTrace(kept); err != nil {
		r.log.Warn("writing down what the attempt held over time", "attempt", r.who.Attempt.ID, "error", err)
	}
}
