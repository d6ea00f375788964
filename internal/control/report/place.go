package report

import (
	"cmp"
	"slices"
	"time"
)

// Place is the sweep's use of one GPU, or of one host's cores.
type Place struct {
	HostID       string
	HostName     string
	DeviceID     string // empty = the host's cores
	Class        string // of the GPU, without how attempts share it; empty for cores
	MemoryBytes  int64  // of the GPU, or of the host
	DefaultBytes int64  // DefaultModeBytes; 0 for cores: nothing is claimed there

	Trials   int // that had an attempt there
	Attempts int // that began there

	Used        time.Duration // with at least one attempt of the sweep
	Charged     time.Duration // part of Used, by the share of the reserved memory; Used without another sweep
	AttemptTime time.Duration // of all its attempts, one after the other
	AtOnce      float64       // attempts of the sweep, mean over Used; 0 when that is 0
	MaxAtOnce   int

	ReservedByteSeconds float64
	BusyShare           float64 // 0 to 1: Used divided by the time from the sweep's first start to its last end on any place
}

// placeKey names a card, or a host's cores. A card is the same on another host.
type placeKey struct{ host, device string }

func keyOf(a Attempt) placeKey {
	if a.DeviceID != "" {
		return placeKey{device: a.DeviceID}
	}

	return placeKey{host: a.HostID}
}

// use is a place while its time is gone through.
type use struct {
	Place

	edges  []edge
	trials map[int]bool
	beside map[string]bool // attempts that had another beside them, by their ids
}

// edge is where an attempt begins or ends.
type edge struct {
	at    time.Time
	delta int // 1 or -1
	of    *Attempt
}

func placesOf(in Input) map[placeKey]*use {
	places := make(map[placeKey]*use)

	for i := range in.Attempts {
		a := &in.Attempts[i]

		from, to, began := a.interval(in.AsOf)
		if !began {
			continue
		}

		p := places[keyOf(*a)]
		if p == nil {
			p = newUse(*a)
			places[keyOf(*a)] = p
		}

		if a.SweepID == in.SweepID {
			p.Attempts++
			p.AttemptTime += to.Sub(from)
			p.ReservedByteSeconds += float64(a.ReservedBytes) * to.Sub(from).Seconds()
			p.trials[a.Trial] = true
		}

		if to.After(from) {
			p.edges = append(p.edges, edge{from, 1, a}, edge{to, -1, a})
		}
	}

	for _, p := range places {
		p.Trials = len(p.trials)
		p.follow(in.SweepID)
	}

	return places
}

func newUse(a Attempt) *use {
	p := &use{trials: map[int]bool{}, beside: map[string]bool{}, Place: Place{
		HostID: a.HostID, HostName: a.HostName, DeviceID: a.DeviceID, MemoryBytes: a.MemoryBytes,
	}}

	if a.DeviceID != "" {
		p.Class, p.DefaultBytes = string(kindOf(a.Class)), DefaultModeBytes(a.MemoryBytes)
	}

	return p
}

// load is the attempts on a place at one moment.
type load struct {
	own, all           int
	ownBytes, allBytes int64
	unmarked           map[string]bool // running, without a neighbour so far
}

func (l *load) take(e edge, sweepID string) {
	l.all += e.delta
	l.allBytes += int64(e.delta) * e.of.ReservedBytes

	if e.of.SweepID == sweepID {
		l.own += e.delta
		l.ownBytes += int64(e.delta) * e.of.ReservedBytes
	}

	if e.delta > 0 {
		l.unmarked[e.of.ID] = true
	} else {
		delete(l.unmarked, e.of.ID)
	}
}

// share is the sweep's part of the place: of the reserved memory, or of the
// attempts when none reserved any.
func (l *load) share() float64 {
	if l.allBytes > 0 {
		return float64(l.ownBytes) / float64(l.allBytes)
	}

	return float64(l.own) / float64(l.all)
}

// follow goes through the place's time, from edge to edge.
func (p *use) follow(sweepID string) {
	slices.SortFunc(p.edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.delta, b.delta)) })

	now := load{unmarked: map[string]bool{}}
	charged := 0.0

	for i, e := range p.edges {
		now.take(e, sweepID)
		p.MaxAtOnce = max(p.MaxAtOnce, now.own)

		if i == len(p.edges)-1 {
			break
		}

		length := p.edges[i+1].at.Sub(e.at)
		if length == 0 {
			continue
		}

		if now.own > 0 {
			p.Used += length
			charged += now.share() * float64(length)
		}

		if now.all > 1 {
			for id := range now.unmarked {
				p.beside[id] = true
			}

			clear(now.unmarked)
		}
	}

	p.Charged = time.Duration(charged)
	if p.Used > 0 {
		p.AtOnce = p.AttemptTime.Seconds() / p.Used.Seconds()
	}
}
