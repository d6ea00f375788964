package sampling

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

// Trace is what an attempt held over time, as far as the database lacks it. It is thinned
// as it grows, so it stays small while the database is away.
type Trace struct {
	opened time.Time     // by the monotonic clock, as the times of samples are
	age    time.Duration // of the attempt when the trace was opened

	mu     sync.Mutex
	points []berth.MemoryPoint // ascending, one for each interval
	newest int                 // second of the newest sample; it decides how long the intervals are
}

// NewTrace compares the wall clock with Docker's time once: a step of the clock moves no
// later sample into the past. A zero startedAt means that the start is not known: the
// attempt begins now.
func NewTrace(startedAt time.Time) *Trace {
	t := &Trace{opened: time.Now()}
	if !startedAt.IsZero() {
		t.age = t.opened.Sub(startedAt)
	}

	return t
}

// AddHost notes the container's working set.
func (t *Trace) AddHost(bytes int64, at time.Time) { t.add(at, berth.MemoryPoint{HostBytes: &bytes}) }

// AddDevice notes what the container holds of its GPU's memory.
func (t *Trace) AddDevice(bytes int64, at time.Time) {
	t.add(at, berth.MemoryPoint{DeviceBytes: &bytes})
}

// AddActivity notes what the attempt causes of its GPU's activity.
func (t *Trace) AddActivity(own Part, at time.Time) {
	if own.known { // the estimate of a part may be a little more than there is
		t.add(at, berth.MemoryPoint{SMMilli: new(min(max(int64(own.parts[0]*berth.FullActivity+0.5), 0), berth.FullActivity))})
	}
}

func (t *Trace) add(at time.Time, p berth.MemoryPoint) {
	t.mu.Lock()
	defer t.mu.Unlock()

	// PostgreSQL keeps the second in 32 bits.
	p.Second = int(min(max((t.age+at.Sub(t.opened))/time.Second, 0), math.MaxInt32))
	t.newest = max(t.newest, p.Second)
	t.points = timeline.ThinMemory(append(t.points, p), timeline.MemoryInterval(t.newest))
}

// Take returns what the database lacks, but an interval that began within the newest
// second: its GPU may not have been read yet.
func (t *Trace) Take() []berth.MemoryPoint {
	t.mu.Lock()
	defer t.mu.Unlock()

	end := len(t.points)
	if end > 0 && t.points[end-1].Second == t.newest {
		end--
	}

	taken := t.points[:end:end]
	t.points = slices.Clone(t.points[end:])

	return taken
}

// Restore takes back what could not be stored.
func (t *Trace) Restore(points []berth.MemoryPoint) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.points = timeline.ThinMemory(append(points, t.points...), timeline.MemoryInterval(t.newest))
}

// Rest returns all that the database lacks.
func (t *Trace) Rest() []berth.MemoryPoint {
	t.mu.Lock()
	defer t.mu.Unlock()

	return slices.Clone(t.points)
}
