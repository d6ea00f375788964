package packing

import "slices"

// keep keeps a host from taking anything else in this round: the one that was
// kept in the last round, so that its attempts come to an end, else the one
// that is nearest to fitting. A host that was kept for a turn in vain waits
// until all others have had theirs: what runs there may run for days. keep
// returns the host's id, and those of the turns in vain. It returns no host
// when there is none, or between turns, while the host of the last one is open
// to all: no younger request keeps that one then either, or several of them
// would keep it free between them without an end.
func (l *ledger) keep(r *Request) (host string, vain []string) {
	turn, kept := turnOf(r)
	vain = r.VainHosts

	if !kept {
		if r.KeptHost != "" {
			vain = append(slices.Clip(vain), r.KeptHost)
		}

		last := ""
		if len(vain) > 0 {
			last = vain[len(vain)-1]
		}

		if s := l.nearest(r, last, nil); s != nil {
			s.claimed = true
		}

		return "", vain
	}

	if l.mayKeep == 0 {
		return "", vain
	}

	s := l.nearest(r, r.KeptHost, vain)
	if s == nil && len(vain) > 0 {
		vain = nil
		s = l.nearest(r, r.KeptHost, nil)
	}

	if s == nil {
		return "", vain
	}

	l.mayKeep--
	s.claimed, s.kept = true, turn

	return s.ID, vain
}

// nearest is the host that is nearest to fitting once its attempts have ended,
// or the preferred one, if that is among them; nil when there is none.
func (l *ledger) nearest(r *Request, prefer string, but []string) *site {
	var (
		best  *site
		least float64
	)

	for i := range l.hosts {
		s := &l.hosts[i]
		if s.claimed || !s.holdsWhenDone(r) || slices.Contains(but, s.ID) {
			continue
		}

		if s.ID == prefer {
			return s
		}

		if short := s.shortage(&r.Demand); best == nil || short < least {
			best, least = s, short
		}
	}

	return best
}
