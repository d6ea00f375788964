package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

const (
	// drainFor is how long a GPU may run empty to be shared in another mode. Attempts that
	// run for longer keep it.
	drainFor = 30 * time.Minute
	// drainAgain is for how many times longer it then stays in its mode: a drain costs a
	// GPU a sixth of its time at the most, when it never becomes empty.
	drainAgain = 5
	// drainPart is the part of the GPUs, as 1/n, that run empty at once; one may.
	drainPart = 4
	// leastByMPS is how many attempts, on a GPU or coming, make it worth to drain it for
	// MPS without a measurement: four did 1.3 times as much by MPS as by time slices, and
	// twelve twice as much (one H200, 2026-11-21).
	leastByMPS = 4
	// longestRound is the most that a round counts for the one before it: rounds without
	// waiting requests do not count.
	longestRound = 5 * poll
)

// drains is for how long GPUs have run empty to be shared in another mode, or may not
// because they did, by host and id. A new leader counts from zero: that only takes
// longer.
type drains struct {
	at    time.Time // of the last round
	spent map[packing.Place]time.Duration
}

// begin counts the time since the last round for the GPUs that drain by the stored
// advice, and for resting ones. A drain that is interrupted keeps its remaining time.
func (d *drains) begin(hosts []berth.Host, now time.Time) {
	since := max(min(now.Sub(d.at), longestRound), time.Nanosecond) // 0 is none
	counted := make(map[packing.Place]time.Duration)

	for _, h := range hosts {
		for _, dev := range h.Devices {
			place := packing.Place{HostID: h.ID, DeviceID: dev.ID}

			switch spent := d.spent[place]; {
			case dev.Attempts == 0, spent >= (1+drainAgain)*drainFor: // the awaited attempts have come; it has rested
			case spent >= drainFor || draining(dev):
				counted[place] = spent + since
			case spent > 0:
				counted[place] = spent
			}
		}
	}

	d.at, d.spent = now, counted
}

// rests reports whether a GPU stays in its mode, as it ran empty for long enough.
func (d *drains) rests(place packing.Place) bool { return d.spent[place] >= drainFor }

// draining reports whether a GPU runs empty by its advice.
func draining(dev berth.Device) bool {
	return dev.Attempts > 0 && dev.Advice.Mode != "" && dev.Advice.Mode != dev.Mode
}
