package placer

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// sliced is for how long GPUs have been shared by time slices without need.
type sliced struct{ counts }

// begin counts the time since the last round, and stores it in the hosts' GPUs. Each
// attempt comes to a GPU in a round, so a GPU that drained was seen empty. While a
// GPU takes no MPS clients the count stands.
func (s *sliced) begin(hosts []berth.Host, now time.Time) {
	s.tick(hosts, now, func(dev berth.Device, spent time.Duration) counting {
		switch {
		case packing.Sliced(dev):
			return goesOn
		case dev.Attempts > 0 && dev.Mode == berth.SharingTimeSlicing && spent > 0:
			return stands
		default:
			return forgets
		}
	})

	for _, h := range hosts {
		for i := range h.Devices {
			if dev := &h.Devices[i]; packing.Sliced(*dev) {
				dev.SlicedFor = s.spent[packing.Place{HostID: h.ID, DeviceID: dev.ID}]
			}
		}
	}
}
