package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

const (
	// drainFor is how long a GPU may run empty to be shared in another mode. Attempts that
	// run for longer keep it: a mode gains up to a tenth where one shape fills a GPU.
	drainFor = 10 * time.Minute
	// drainAgain is for how much longer it then stays in its mode.
	drainAgain = 5
	// drainPart is the part of the GPUs, as 1/n, that run empty at once; one may.
	drainPart = 4
)

// drains is for how long GPUs have run empty to be shared in another mode, or may not
// because they did. A new leader counts anew: that only takes longer.
type drains struct {
	at    time.Time // of the last round
	spent map[packing.Place]time.Duration
}

// begin counts the time since the last round for the GPUs that run empty by the advice
// stored, and for those that rest.
func (d *drains) begin(hosts []berth.Host, now time.Time) {
	since := max(min(now.Sub(d.at), longestRound), time.Nanosecond)
	counted := make(map[packing.Place]time.Duration)

	for _, h := range hosts {
		for _, dev := range h.Devices {
			place := packing.Place{HostID: h.ID, DeviceID: dev.ID}

			switch spent := d.spent[place]; {
			case dev.Attempts == 0: // it is empty: what it waited for has come
			case spent >= drainFor || draining(dev):
				counted[place] = spent + since
			case spent > 0: // it stands: what comes and goes must not begin a turn each time
				counted[place] = spent
			}

			if counted[place] >= (1+drainAgain)*drainFor {
				delete(counted, place)
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
