package packing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// lease is a running attempt of the simulation.
type lease struct {
	packing.Request

	placement berth.Placement
	end       time.Duration
}

// simulation plays rounds of the placer against a clock of its own.
type simulation struct {
	t       *rapid.T
	empty   []berth.Host
	leases  []lease
	waiting []packing.Request
	arrived map[string]time.Duration
	now     time.Duration
	small   int
}

const roundEvery = 20 * time.Second

// round ends attempts, lets small ones arrive until some wait, and decides.
// It returns the attempts that were placed.
func (s *simulation) round(longest time.Duration) []string {
	s.now += roundEvery

	var running []lease

	for _, l := range s.leases {
		if l.end > s.now {
			running = append(running, l)
		}
	}

	s.leases = running
	for range rapid.IntRange(0, 6).Draw(s.t, "arrivals") {
		s.small++
		s.arrive(packing.Request{
			AttemptID: fmt.Sprintf("small-%05d", s.small), Number: s.small,
			Demand:   berth.Demand{MemoryBytes: gib, CPUMilli: 1000, DeviceBytes: int64(s.small%2) * gib},
			Expected: time.Duration(rapid.IntRange(0, 1).Draw(s.t, "expected")) * longest * 100, // before the large one
		})
	}

	hosts := book(s.t, world{hosts: s.empty, requests: requestsOf(s.leases)}, nil)
	for i := range hosts {
		for _, l := range s.leases {
			occupy(&hosts[i], l)
		}
	}

	return s.decide(hosts, longest)
}

func (s *simulation) arrive(r packing.Request) {
	s.arrived[r.AttemptID] = s.now
	s.waiting = append(s.waiting, r)
}

func (s *simulation) decide(hosts []berth.Host, longest time.Duration) []string {
	for i := range s.waiting {
		s.waiting[i].Waited = s.now - s.arrived[s.waiting[i].AttemptID]
	}

	w := world{hosts: hosts, requests: s.waiting}
	decisions := w.decide()
	book(s.t, w, decisions)

	byID := map[string]packing.Request{}
	for _, r := range s.waiting {
		byID[r.AttemptID] = r
	}

	var placed []string

	s.waiting = nil

	for _, d := range decisions {
		r := byID[d.AttemptID]
		if !d.Placed {
			r.KeptHost = d.KeptHost
			s.waiting = append(s.waiting, r)

			continue
		}

		runs := time.Duration(rapid.Int64Range(1, int64(longest/time.Second)).Draw(s.t, "runs")) * time.Second
		s.leases = append(s.leases, lease{Request: r, placement: d.Placement, end: s.now + runs})
		placed = append(placed, d.AttemptID)
	}

	return placed
}

func requestsOf(leases []lease) []packing.Request {
	out := make([]packing.Request, len(leases))
	for i, l := range leases {
		out[i] = l.Request
	}

	return out
}

func occupy(h *berth.Host, l lease) {
	if h.ID != l.placement.HostID {
		return
	}

	h.MemoryReservedBytes += l.Demand.MemoryBytes
	h.CPUMilliReserved += l.Demand.CPUMilli
	h.Attempts++
	h.Exclusive = h.Exclusive || l.Demand.Exclusive && l.placement.DeviceID == ""

	for i := range h.Devices {
		if h.Devices[i].ID == l.placement.DeviceID {
			h.Devices[i].ReservedBytes += l.Demand.DeviceBytes
			h.Devices[i].ContextsReserved++
			h.Devices[i].Exclusive = h.Devices[i].Exclusive || l.Demand.Exclusive
		}
	}
}

// TestDecide_NothingStarves: however small ones keep coming, a large request is
// placed once it has waited for DrainAfter and what ran then has ended.
func TestDecide_NothingStarves(t *testing.T) {
	t.Parallel()

	const longest = 5 * time.Minute

	for name, large := range map[string]struct {
		demand berth.Demand
		drain  time.Duration
	}{
		"memory":          {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100}, packing.DrainAfter},
		"CPU":             {berth.Demand{MemoryBytes: gib, CPUMilli: 4000}, packing.DrainAfter},
		"device":          {berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: 2 * gib}, packing.DrainAfter},
		"exclusive":       {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true}, packing.DrainAfterExclusive},
		"alone on device": {berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib, Exclusive: true}, packing.DrainAfterExclusive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			rapid.Check(t, func(t *rapid.T) {
				s := &simulation{t: t, arrived: map[string]time.Duration{}}
				for i := range rapid.IntRange(1, 3).Draw(t, "hosts") {
					s.empty = append(s.empty, withDevices(host(fmt.Sprint(i), 4, 4), 2, 2))
				}

				for range 3 { // fill the hosts first
					s.round(longest)
				}

				s.waiting = nil // whoever is older is served before
				s.arrive(packing.Request{AttemptID: "large", Demand: large.demand})

				for began := s.now; ; {
					if slices.Contains(s.round(longest), "large") {
						return
					}

					require.LessOrEqual(t, s.now-began, large.drain+longest+2*roundEvery, "still not placed")
				}
			})
		})
	}
}
