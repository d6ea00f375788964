package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// longestRound is the most that a round counts for the one before it: rounds in which
// nothing waits are not looked at.
const longestRound = 5 * poll

// sliced is for how long GPUs have been shared by time slices without need, by host
// and id. A new leader counts anew: that only takes longer.
type sliced struct {
	at    time.Time // of the last round
	spent map[packing.Place]time.Duration
}

// tick counts the time since the last round, and tells it of the hosts' GPUs. Each
// attempt comes to a GPU in a round, so one that drained was seen empty. While a GPU
// takes no clients of MPS the count stands: a daemon that comes and goes must not begin
// a turn each time.
func (s *sliced) tick(hosts []berth.Host, now time.Time) {
	since := max(min(now.Sub(s.at), longestRound), time.Nanosecond) // 0 is none
	counted := make(map[packing.Place]time.Duration)

	for _, h := range hosts {
		for i := range h.Devices {
			dev, place := &h.Devices[i], packing.Place{HostID: h.ID, DeviceID: h.Devices[i].ID}

			switch spent := s.spent[place]; {
			case packing.Sliced(*dev):
				counted[place] = spent + since
				dev.SlicedFor = counted[place]
			case dev.Attempts > 0 && dev.Mode == berth.SharingTimeSlicing && spent > 0:
				counted[place] = spent
			}
		}
	}

	s.at, s.spent = now, counted
}
