package packing

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// ledger is a working copy of the hosts on which placements are tried.
type ledger struct {
	hosts    []site          // by id
	former   []site          // by id: what was there a moment ago, where nothing is placed
	mayKeep  int             // hosts that may still be kept free
	cordoned map[string]bool // sweeps that a host is cordoned for alone
}

// site is a host with what every try needs of it.
type site struct {
	berth.Host

	capacity int64 // bytes that leases may hold together
	claimed  bool  // by an overdue request, whose turns decide when it is kept free

	kept time.Duration // the turn for which it is kept free, for an attempt that has waited longer; 0 = open to all

	roomiest int   // index of the device with the most room
	room     int64 // bytes free there; 0 or less = no device takes anything
}

func newLedger(hosts []berth.Host) *ledger {
	l := &ledger{hosts: make([]site, 0, len(hosts)), cordoned: make(map[string]bool)}
	ready := 0

	for _, h := range hosts {
		if h.State == berth.HostReady {
			ready++
		}

		if h.CordonSweep != "" {
			l.cordoned[h.CordonSweep] = true
		}

		for _, m := range h.MissingImages {
			l.cordoned[m.SweepID] = l.cordoned[m.SweepID] || m.Cordoned
		}

		h.MissingImages = slices.Clone(h.MissingImages)
		h.Devices = slices.Clone(h.Devices)
		slices.SortFunc(h.Devices, func(a, b berth.Device) int { return cmp.Compare(a.ID, b.ID) })

		s := site{Host: h, capacity: h.CapacityBytes()}
		s.findRoom()

		if h.State == berth.HostFormer {
			l.former = append(l.former, s)
		} else {
			l.hosts = append(l.hosts, s)
		}
	}

	l.mayKeep = max(ready/keptFraction, 1)

	for _, sites := range [][]site{l.hosts, l.former} {
		slices.SortFunc(sites, func(a, b site) int { return cmp.Or(cmp.Compare(a.ID, b.ID), b.FormerUntil.Compare(a.FormerUntil)) })
	}

	return l
}

// findRoom looks for the device with the most room.
func (s *site) findRoom() {
	s.roomiest, s.room = 0, 0

	for i := range s.Devices {
		dev := &s.Devices[i]
		if dev.Exclusive || dev.ContextsReserved >= dev.MaxContexts {
			continue
		}

		if room := min(deviceCapacity(dev), dev.FreeBytes) - dev.ReservedBytes; room > s.room {
			s.roomiest, s.room = i, room
		}
	}
}

// candidate is a place that fits, with what decides between several.
type candidate struct {
	host, device int     // device is -1 for the CPU
	trust        trust   // the most wins, whatever the load: a host that fails at once is always the emptiest
	load         float64 // dominant share in use afterwards; the least wins: spread first, pack when needed
	slack        int64   // memory left afterwards; the least wins: best fit
}

func (c candidate) better(than candidate) bool {
	if c.trust != than.trust {
		return c.trust > than.trust
	}

	return c.load < than.load || c.load == than.load && c.slack < than.slack
}

// trust says how likely a host is to start a container.
type trust int8

const (
	late     trust = iota // its worker is silent: what is placed there waits for minutes when it is gone
	failedIt              // an earlier attempt of the trial failed there
	failing               // the last containers, or those of the sweep, did not start there
	healthy
	tested // a cordoned host whose test attempt is due: a test that never comes never ends the cordon
)

func (s *site) trust(r *Request) trust {
	switch {
	case s.Late:
		return late
	case slices.Contains(r.FailedHosts, s.ID):
		return failedIt
	case s.cordonedFor(r.SweepID):
		return tested
	case s.FailedStarts > 0, s.missing(r.SweepID) != nil:
		return failing
	default:
		return healthy
	}
}

// place books the request on the best candidate, if there is one.
func (l *ledger) place(r *Request) (berth.Placement, bool) {
	var (
		best  candidate
		found bool
	)

	for i := range l.hosts {
		s := &l.hosts[i]
		if s.check(r) != fits {
			continue
		}

		c, ok := s.candidate(&r.Demand)
		c.host, c.trust = i, s.trust(r)

		if ok && (!found || c.better(best)) {
			best, found = c, true
		}
	}

	if !found {
		return berth.Placement{}, false
	}

	return l.book(best, r), true
}

// candidate is the best place on a host that passed check.
func (s *site) candidate(d *berth.Demand) (candidate, bool) {
	if d.DeviceBytes == 0 {
		memory := s.MemoryReservedBytes + d.MemoryBytes
		load := max(share(memory, s.capacity), share(s.CPUMilliReserved+d.CPUMilli, s.CPUMilli))

		return candidate{device: -1, load: load, slack: s.capacity - memory}, true
	}

	var (
		best  candidate
		found bool
	)

	for i := range s.Devices {
		dev := &s.Devices[i]
		if !fitsDevice(dev, d) {
			continue
		}

		reserved, total := dev.ReservedBytes+d.DeviceBytes, deviceCapacity(dev)
		c := candidate{device: i, load: share(reserved, total), slack: total - reserved}

		if !found || c.better(best) {
			best, found = c, true
		}
	}

	return best, found
}

// book books the request on a candidate. One that is to be alone on its host
// gets all that the host has for it: it asked for what the largest had then.
func (l *ledger) book(c candidate, r *Request) berth.Placement {
	h, d := &l.hosts[c.host], &r.Demand
	placement := berth.Placement{HostID: h.ID}
	memory := d.MemoryBytes

	if d.Exclusive && c.device < 0 {
		memory = max(memory, berth.AloneBytes(h.capacity, h.MemoryFreeBytes)-h.MemoryReservedBytes)
		placement.MemoryBytes = memory
	}

	h.TestDue = h.TestDue && !h.FailsStartsOf(r.SweepID) // one test attempt at a time

	if m := h.missing(r.SweepID); m != nil {
		m.TestDue = false
	}

	h.CPUMilliReserved += d.CPUMilli
	h.MemoryReservedBytes += memory
	h.Attempts++
	h.Exclusive = h.Exclusive || d.Exclusive && c.device < 0

	if c.device >= 0 {
		dev := &h.Devices[c.device]
		dev.ReservedBytes += d.DeviceBytes
		dev.ContextsReserved += contexts(d)
		dev.Exclusive = dev.Exclusive || d.Exclusive
		placement.DeviceID = dev.ID
		h.findRoom()
	}

	return placement
}

// impossible reports whether no host could ever hold the demand, even when it
// is empty. A lost host counts: it may come back, until it is removed. So does a
// former host, which is returned when no other one could hold the demand, the
// one that counts longest. Without hosts nothing is known to be impossible.
func (l *ledger) impossible(d *berth.Demand) (former *site, impossible bool) {
	for i := range l.hosts {
		if l.hosts[i].holds(d) {
			return nil, false
		}
	}

	for i := range l.former {
		if s := &l.former[i]; s.holds(d) && (former == nil || s.FormerUntil.After(former.FormerUntil)) {
			former = s
		}
	}

	return former, former == nil && len(l.hosts) > 0
}

// most is the memory of the largest host that has what else a request needs,
// when it is less than the request asks for; else what programs outside Berth
// leave of the host where they leave the most, when that is less, and a little
// less still, as they come and go (berth.AloneBytes); else 0. Unless all count,
// only hosts do that take attempts of the sweep. Of all, what is left does not
// count: those programs may end.
func (l *ledger) most(r *Request, all bool) (bytes int64, outside bool) {
	rest, has, free := r.Demand, int64(0), int64(0)
	rest.MemoryBytes = 0

	for i := range l.hosts {
		s := &l.hosts[i]
		if left := min(s.capacity, s.MemoryFreeBytes); (s.capacity > has || left > free) && (all || s.takes(r)) && s.holds(&rest) {
			has, free = max(has, s.capacity), max(free, left)
		}

		if has >= r.Demand.MemoryBytes && (all || free >= r.Demand.MemoryBytes) {
			return 0, false
		}
	}

	if has < r.Demand.MemoryBytes {
		return has, false
	}

	if free == 0 {
		return 0, false
	}

	return berth.AloneBytes(has, free), true
}

// avoid returns the hosts where the request's trial failed and the image of its
// sweep is missing, as long as another host takes its attempts, could hold it,
// and is not known to lack the image. One that is cordoned for the image takes
// tests: it is not among them.
func (l *ledger) avoid(r *Request) (hosts []string) {
	if len(r.FailedHosts) == 0 {
		return nil
	}

	other := false

	for i := range l.hosts {
		s := &l.hosts[i]

		switch m := s.missing(r.SweepID); {
		case m == nil:
			other = other || s.takes(r) && s.holds(&r.Demand)
		case !m.Cordoned && slices.Contains(r.FailedHosts, s.ID):
			hosts = append(hosts, s.ID)
		}
	}

	if !other {
		return nil
	}

	return hosts
}

// size is the largest that any one host or device has of each dimension.
type size struct{ memory, cpu, device int64 }

// largest is the size of the hosts that take attempts now; of all, when none does.
func (l *ledger) largest() size {
	var ready, all size

	for i := range l.hosts {
		s := &l.hosts[i]
		all.include(s)

		if s.State == berth.HostReady {
			ready.include(s)
		}
	}

	if ready == (size{}) {
		return all
	}

	return ready
}

func (z *size) include(s *site) {
	z.memory, z.cpu = max(z.memory, s.capacity), max(z.cpu, s.CPUMilli)

	for i := range s.Devices {
		z.device = max(z.device, deviceCapacity(&s.Devices[i]))
	}
}

// dominantShare is the largest fraction that the demand takes of any dimension;
// 0 without hosts.
func (z *size) dominantShare(d berth.Demand) float64 {
	return max(share(d.MemoryBytes, z.memory), share(d.CPUMilli, z.cpu), share(d.DeviceBytes, z.device))
}
