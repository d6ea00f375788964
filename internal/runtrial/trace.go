package runtrial

import (
	"context"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// memoryEvery is how often what an attempt held over time is written: one statement for
// each attempt. A worker that is killed loses so much of it at most; the peaks of its
// usage are on disk sooner (keepUsageEvery).
const memoryEvery = 10 * time.Second

// trace is what an attempt held over time, as far as the database lacks it. It is thinned
// as it grows, so it stays small while the database is away.
type trace struct {
	startedAt time.Time

	mu     sync.Mutex
	points []berth.MemoryPoint // ascending, one for each interval
	newest int                 // second of the newest sample; it decides how long the intervals are
}

func newTrace(startedAt time.Time) *trace { return &trace{startedAt: startedAt} }

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

	p.Second = max(int(at.Sub(t.startedAt)/time.Second), 0)
	t.newest = max(t.newest, p.Second)
	t.points = berth.ThinMemory(append(t.points, p), berth.MemoryInterval(t.newest))
}

// take returns what the database lacks, and forgets it.
func (t *trace) take() []berth.MemoryPoint {
	t.mu.Lock()
	defer t.mu.Unlock()

	points := t.points
	t.points = nil

	return points
}

// restore puts back what could not be stored.
func (t *trace) restore(points []berth.MemoryPoint) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.points = berth.ThinMemory(append(points, t.points...), berth.MemoryInterval(t.newest))
}

// keepMemory writes what the attempt held over time, now and then, until its container has
// exited; what is left then is part of the verdict. A database that is away loses nothing.
func (r *run) keepMemory(ctx context.Context, exited <-chan struct{}) error {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
			r.putMemory(ctx)
		case <-exited:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *run) putMemory(ctx context.Context) {
	points := r.trace.take()
	if len(points) == 0 {
		return
	}

	err := r.records.PutMemory(ctx, r.who.Attempt.ID, r.order.Token, points)
	if err == nil {
		return
	}

	r.trace.restore(points)

	if ctx.Err() == nil {
		r.log.Warn("storing what the attempt held over time; trying again", "attempt", r.who.Attempt.ID, "error", err)
	}
}
