package packing

import "slices"

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
// requests in this round: the last round's, so that its attempts come to an end,
// else the nearest to fitting. A host that was kept for a turn in vain waits
// until all others have had their turn: its attempts may run for days. keep
// returns the kept place, and the places of the turns in vain. It keeps nothing
// when there is no need, or between turns, while the last place is open to all:
// no younger request keeps that place then either, or several of them would take
// turns with it for ever.
func (l *ledger) keepFree(r *Request) (kept Place, vain []Place) {
	turn, keeps := turnOf(r)
	vain = r.Vain

	if !keeps {
		if r.Kept != (Place{}) {
			vain = append(slices.Clip(vain), r.Kept)
		}

		last := Place{}
		if len(vain) > 0 {
			last = vain[len(vain)-1]
		}

		if s, ok := l.nearest(r, last, nil, false); ok {
			s.claimTurns()
		}

		return Place{}, vain
	}

	s, ok := l.nearest(r, r.Kept, vain, true)
	if !ok && len(vain) > 0 {
		if s, ok = l.nearest(r, r.Kept, nil, true); ok {
			vain = nil
		}
	}

	if !ok {
		return Place{}, vain
	}

	s.claimTurns()

	if s.gpu {
		l.mayKeepGPUs--
		s.site.keeping[s.at.device].kept = turn
		s.site.reserve(s.site.demand(r, s.at.class)) // or younger ones would fill the host until then
	} else {
		l.mayKeep--
		s.site.kept = turn
	}

	return s.place(), vain
}

// claimTurns reserves the seat for the turns of one request.
func (s seat) claimTurns() {
	if s.gpu {
		s.site.keeping[s.at.device].claimed = true
	} else {
		s.site.claimed = true
	}
}

// nearest is the seat nearest to fitting once the attempts there have ended, or
// the preferred one, if it can fit. With toKeep it must be of a kind, host or
// GPU, that has a turn left.
func (l *ledger) nearest(r *Request, prefer Place, but []Place, toKeep bool) (best seat, found bool) {
	least := 0.0

	for i := range l.hosts {
		s := &l.hosts[i]
		if s.claimed {
			continue
		}

		for at := range s.spotsFor(r) {
			if at.device >= 0 && s.keeping[at.device].claimed || !s.inWantedMode(r, at) || !s.holdsWhenDone(r, at) {
				continue
			}

			d := s.demand(r, at.class)
			here := seat{s, at, at.device >= 0 && s.checkHost(d) == fits}

			if slices.Contains(but, here.place()) || toKeep && l.keepsAll(here) {
				continue
			}

			if here.place() == prefer {
				return here, true
			}

			if short := s.shortage(d, at); !found || short < least {
				best, least, found = here, short, true
			}
		}
	}

	return best, found
}

// keepsAll reports whether no more of the seat's kind may be kept.
func (l *ledger) keepsAll(s seat) bool {
	if s.gpu {
		return l.mayKeepGPUs == 0
	}

	return l.mayKeep == 0
}
