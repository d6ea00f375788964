package packing

import (
	"cmp"
	"slices"
)

// seat is a spot of a host.
type seat struct {
	site *site
	at   *spot
	gpu  bool // the GPU alone has to become free: the host has room beside it
}

// place returns the host or GPU of the seat, to be kept free.
func (s seat) place() Place {
	if s.gpu {
		return Place{s.site.ID, s.site.Devices[s.at.device].ID}
	}

	return Place{HostID: s.site.ID}
}

// keepFree keeps a host, or a GPU where the host itself has room, free of other
// requests in this round, and returns it: the last round's, so that its attempts come
// to an end, else in the first turn the nearest to fitting, and in each later turn
// another one, as attempts there may run for days. Between turns the place is open to
// all, and keepFree keeps nothing: no younger request keeps that place then
// either, or several of them would take turns with it for ever.
func (l *ledger) keepFree(r *Request) Place {
	turn, number, keeps := turnOf(r)

	seats := l.seats(r, keeps)
	if len(seats) == 0 {
		return Place{}
	}

	s := slices.MinFunc(seats, func(a, b seat) int { return cmp.Compare(a.shortage(r), b.shortage(r)) })
	if i := slices.IndexFunc(seats, func(s seat) bool { return s.place() == r.Kept }); i >= 0 {
		s = seats[i]
	} else if number > 0 {
		places := slices.CompactFunc(seats, func(a, b seat) bool { return a.place() == b.place() })
		s = places[number%len(places)]
	}

	s.claimTurns()

	if !keeps {
		return Place{}
	}

	if s.gpu {
		l.mayKeepGPUs--
		s.site.keeping[s.at.device].kept = turn
		s.site.reserve(s.site.demand(r, s.at.class)) // or younger ones would fill the host until then
	} else {
		l.mayKeep--
		s.site.kept = turn
	}

	return s.place()
}

// shortage is how far the request is from fitting there.
func (s seat) shortage(r *Request) float64 {
	return s.site.shortage(s.site.demand(r, s.at.class), s.at)
}

// claimTurns reserves the seat for the turns of one request.
func (s seat) claimTurns() {
	if s.gpu {
		s.site.keeping[s.at.device].claimed = true
	} else {
		s.site.claimed = true
	}
}

// seats are the seats that can fit the request once the attempts there have ended, by
// host; with toKeep those of a kind, host or GPU, that has a turn left.
func (l *ledger) seats(r *Request, toKeep bool) (seats []seat) {
	for i := range l.hosts {
		s := &l.hosts[i]
		if s.claimed {
			continue
		}

		for at := range s.spotsFor(r) {
			if at.device >= 0 && s.keeping[at.device].claimed || !s.inWantedMode(r, at) || !s.holdsWhenDone(r, at) {
				continue
			}

			here := seat{s, at, at.device >= 0 && s.checkHost(s.demand(r, at.class)) == fits}
			if !toKeep || !l.keepsAll(here) {
				seats = append(seats, here)
			}
		}
	}

	return seats
}

// keepsAll reports whether no more of the seat's kind may be kept.
func (l *ledger) keepsAll(s seat) bool {
	if s.gpu {
		return l.mayKeepGPUs == 0
	}

	return l.mayKeep == 0
}
