package packing

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
)

// A GPU on which attempts share by time slices offers that mode alone until the last
// of them has ended. Requests that could use MPS, which is faster, join them where
// they find room, so one attempt that needed time slices would hold its GPU in that
// mode for as long as others come. Hence such a GPU takes turns: it is closed to
// requests that can use MPS, so that it drains and comes back, then open to all for
// openTurns times as long. A turn is twice as long as the one before: attempts that
// run for longer than the first one end within a later one.
//
// It costs a GPU a sixth of its time at the most, when it never drains. Coming back
// gains 1.3 times the speed with four attempts there and 2 times with twelve (one
// H200, 2026-11-21: 3.96 against 3.04, and 9.41 against 4.67 times one alone), so it
// pays from four on, and not for less.
const (
	firstTurnBack   = 10 * time.Minute
	longestTurnBack = time.Hour
	openTurns       = 5
	leastTurnBack   = 4 // attempts on the GPU, or that could be
)

// closesFor is the turn for which a GPU is closed that has been shared by time slices
// without need for sliced; 0 = it is open.
func closesFor(sliced time.Duration) time.Duration {
	turn := firstTurnBack

	for ; sliced >= (1+openTurns)*turn; turn = min(2*turn, longestTurnBack) {
		sliced -= (1 + openTurns) * turn
	}

	if sliced <= 0 || sliced >= turn {
		return 0
	}

	return turn
}

// Sliced reports whether a GPU is shared by time slices although it takes clients of
// MPS, and was not measured to do more by time slices: the caller of Decide counts for
// how long (berth.Device.SlicedFor).
func Sliced(dev berth.Device) bool {
	return dev.Advice.Mode != berth.SharingTimeSlicing && dev.Attempts > 0 && dev.Mode == berth.SharingTimeSlicing && dev.MPSContexts > 0 && dev.ProblemBy(berth.SharingMPS) == ""
}

// turnBack closes GPUs whose turn it is: a part of all at once, by host and id.
func (r *round) turnBack(requests []Request) {
	left := r.ledger.mayKeepGPUs

	for i := range r.ledger.hosts {
		s := &r.ledger.hosts[i]

		for j := 1; j < len(s.spots) && left > 0; j++ {
			at := &s.spots[j]
			dev := &s.Devices[at.device]

			turn := closesFor(dev.SlicedFor)
			if at.mode != berth.SharingMPS || s.State != berth.HostReady || turn == 0 || !Sliced(*dev) {
				continue
			}

			if dev.Attempts+r.couldBe(s, at, requests) >= leastTurnBack {
				s.keeping[at.device].turning = turn
				left--
			}
		}
	}
}

// couldBe is how many requests could be on a spot, as far as it matters, with nothing
// else there, and are not behind their sweep's own limit.
func (r *round) couldBe(s *site, at *spot, requests []Request) int {
	n, of := 0, make(map[string]int)

	for i := range requests {
		request := &requests[i]
		limit := r.sweeps[request.SweepID]
		limit.Running += of[request.SweepID]

		if d := request.on[at.class]; d != nil && s.lacks(request) == fits && s.never(d, at) == fits && sweepRejection(limit, request.Away).Dimension == "" {
			n++
			of[request.SweepID]++
		}

		if n == leastTurnBack {
			break
		}
	}

	return n
}

// turnsBack reports whether the spot's GPU is closed to a request, which could share
// it by MPS.
func (s *site) turnsBack(r *Request, at *spot) bool {
	if at.device < 0 || s.keeping[at.device].turning == 0 || at.mode == berth.SharingMPS {
		return false
	}

	first := &s.spots[at.first] // the mode to prefer is MPS where there is MPS
	d := r.on[first.class]

	return d != nil && s.never(d, first) == fits
}

// waitsForTurn reports whether a GPU that could hold the request turns back: it takes
// the request before long, and nothing else has to be kept free.
func (l *ledger) waitsForTurn(r *Request) bool {
	for i := range l.hosts {
		s := &l.hosts[i]

		for at := range s.spotsFor(r) {
			if s.turnsBack(r, at) && s.takes(r) {
				return true
			}
		}
	}

	return false
}

// turnText says why a GPU that turns back is closed.
func turnText(s *site, dev *berth.Device, turn time.Duration) string {
	return fmt.Sprintf("host %s, GPU %s: %d attempt(s) share it by time slices and nothing needs that any more: for %d min at most it takes none that can share it by MPS, "+
		"so that it comes back to MPS at their end", s.Name, dev.ID, dev.Attempts, int(turn.Minutes()))
}
