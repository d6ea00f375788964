package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// longestRound is the most that a round counts for the one before it: rounds without
// waiting requests do not count.
const longestRound = 5 * poll

// counts holds how long a state of a GPU has lasted, by host and id. A new leader
// counts from zero: that only takes longer.
type counts struct {
	at    time.Time // of the last round
	spent map[packing.Place]time.Duration
}

// counting is a round's effect on the count of a GPU.
type counting int

const (
	forgets counting = iota // a count that starts from zero again
	stands                  // a state that comes and goes must not restart the count
	goesOn
)

// tick counts the time since the last round for each GPU; of gets the earlier count and
// decides.
func (c *counts) tick(hosts []berth.Host, now time.Time, of func(dev berth.Device, spent time.Duration) counting) {
	since := max(min(now.Sub(c.at), longestRound), time.Nanosecond) // 0 is none
	counted := make(map[packing.Place]time.Duration)

	for _, h := range hosts {
		for _, dev := range h.Devices {
			place := packing.Place{HostID: h.ID, DeviceID: dev.ID}

			switch spent := c.spent[place]; of(dev, spent) {
			case goesOn:
				counted[place] = spent + since
			case stands:
				counted[place] = spent
			case forgets:
			}
		}
	}

	c.at, c.spent = now, counted
}
