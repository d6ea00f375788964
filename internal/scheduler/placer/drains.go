package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
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
// because they did.
type drains struct{ counts }

// begin counts the time since the last round for the GPUs that drain by the stored
// advice, and for resting ones.
func (d *drains) begin(hosts []berth.Host, now time.Time) {
	d.tick(hosts, now, func(dev berth.Device, spent time.Duration) counting {
		switch {
		case dev.Attempts == 0, spent >= (1+drainAgain)*drainFor: // the awaited attempts have come; it has rested
			return forgets
		case spent >= drainFor || draining(dev):
			return goesOn
		case spent > 0:
			return stands
		default:
			return forgets
		}
	})
}

// rests reports whether a GPU stays in its mode, as it ran empty for long enough.
func (d *drains) rests(place packing.Place) bool { return d.spent[place] >= drainFor }

// draining reports whether a GPU runs empty by its advice.
func draining(dev berth.Device) bool {
	return dev.Attempts > 0 && dev.Advice.Mode != "" && dev.Advice.Mode != dev.Mode
}
