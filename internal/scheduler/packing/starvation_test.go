package packing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// lease is a running attempt of the simulation.
type lease struct {
	packing.Request

	placement berth.Placement
	end       time.Duration
}

// simulation plays rounds of the placer against a simulated clock.
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
			Demands:  needs(berth.Demand{MemoryBytes: gib, CPUMilli: 1000, DeviceBytes: int64(s.small%2) * gib}),
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
			r.Kept, r.Vain = d.Kept, d.Vain
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

	d := l.placement.Demand
	h.MemoryReservedBytes += d.MemoryBytes
	h.CPUMilliReserved += d.CPUMilli
	h.Attempts++
	h.Exclusive = h.Exclusive || d.Exclusive

	for i := range h.Devices {
		if dev := &h.Devices[i]; dev.ID == l.placement.DeviceID {
			dev.ReservedBytes += d.DeviceBytes
			dev.ContextsReserved++
			dev.Attempts++
			dev.Exclusive = dev.Exclusive || d.ExclusiveDevice
		}
	}
}

// TestDecide_NothingStarves: however many small ones come, a large request is
// placed once it has waited for DrainAfter and the attempts running then have
// ended.
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
		"alone on device": {berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib, ExclusiveDevice: true}, packing.DrainAfterExclusive},
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

				s.waiting = nil // older requests are served before
				s.arrive(packing.Request{AttemptID: "large", Demands: needs(large.demand)})

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

// A neighbour that runs for days must not close its host to others for as long:
// the host is kept free for an hour, then open for an hour, then two, and so on.
func TestDecide_KeepsAHostFreeInTurns(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		demand berth.Demand
		after  time.Duration
	}{
		"exclusive": {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true}, packing.DrainAfterExclusive},
		"large":     {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100}, packing.DrainAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			busy := host("a", 4, 4)
			busy.MemoryReservedBytes, busy.CPUMilliReserved, busy.Attempts = gib, 1000, 1

			for waited, kept := range map[time.Duration]bool{
				-time.Second: false, 0: true, time.Hour - 1: true, time.Hour: false, 2*time.Hour - 1: false,
				2 * time.Hour: true, 4*time.Hour - 1: true, 4 * time.Hour: false, 6*time.Hour - 1: false, 6 * time.Hour: true,
				62 * time.Hour: true, 86*time.Hour - 1: true, 86 * time.Hour: false, 110*time.Hour - 1: false, 110 * time.Hour: true,
			} {
				old := packing.Request{AttemptID: "old", SweepID: "b", Demands: needs(tt.demand), Waited: tt.after + waited, Kept: packing.Place{HostID: "a"}}
				younger := packing.Request{AttemptID: "younger", SweepID: "b", Demands: needs(tt.demand), Waited: tt.after + min(waited, time.Minute) - time.Second}
				small := of("a", ask("small", 1, 1))

				decisions := packing.Decide([]berth.Host{busy}, nil, []packing.Request{small, old, younger})
				_, placed := where(decisions)["small"]
				require.Equal(t, !kept, placed, waited)

				for _, d := range decisions {
					switch {
					case d.AttemptID == "small" && kept:
						require.Contains(t, packing.Explain(d.Rejections(1)[0]), "kept free for an attempt that is overdue, for ")
						require.Contains(t, packing.Explain(d.Rejections(1)[0]), " at most; then it is open for as long")
					case d.AttemptID == "old" && kept:
						require.Equal(t, packing.Place{HostID: "a"}, d.Kept)
					default:
						require.Zero(t, d.Kept, "a younger one does not take the turn over")
					}
				}
			}
		})
	}
}

// Where every run takes longer than the first turn, a later one suffices.
func TestDecide_NothingStarvesBehindLongRuns(t *testing.T) {
	t.Parallel()

	const longest, every = 3 * time.Hour, 10 * time.Minute

	type run struct{ end time.Duration }

	large := packing.Request{AttemptID: "large", Demands: needs(berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true})}

	var runs []run

	for now := time.Duration(0); ; now += every {
		require.LessOrEqual(t, now, 5*longest+time.Hour, "still not placed")

		runs = slices.DeleteFunc(runs, func(r run) bool { return r.end <= now })

		busy := host("a", 4, 4)
		busy.Attempts = len(runs)
		busy.MemoryReservedBytes, busy.CPUMilliReserved = int64(len(runs))*gib, int64(len(runs))*1000

		large.Waited = now
		small := ask("small", 1, 1)
		decisions := packing.Decide([]berth.Host{busy}, nil, []packing.Request{large, small})

		placed := where(decisions)
		if placed["large"] != "" && now > 0 {
			return
		}

		if placed["small"] != "" || now == 0 {
			runs = append(runs, run{now + longest})
		}

		for _, d := range decisions {
			if d.AttemptID == "large" {
				large.Kept = d.Kept
			}
		}
	}
}
