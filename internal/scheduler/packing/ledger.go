package packing

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// ledger is a working copy of the hosts on which placements are tried.
type ledger struct {
	hosts       []site              // by id
	former      []site              // by id: recently removed or larger hosts, where nothing is placed
	classes     []berth.DeviceClass // that the hosts have, ClassCPU first
	mayKeep     int                 // hosts that may still be kept free
	mayKeepGPUs int                 // the same for GPUs
	cordoned    map[string]bool     // sweeps that a host is cordoned for alone
	toMeasure   int                 // shapes whose first attempt on a GPU has no place yet
}

// site is a host with its data for every try.
type site struct {
	berth.Host

	capacity int64     // bytes that leases may hold together
	spots    []spot    // where an attempt can be: the cores alone, then each GPU by id in each of its modes
	keeping  []keeping // of its GPUs
	gpuCPU   int64     // most cores that an attempt on a GPU books, in thousandths, where all GPUs have an advice; 0 = its own demand
	room     []int64   // by class: no GPU of it has more memory for another attempt
	claimed  bool      // by an overdue request, whose turns decide when it is kept free

	kept time.Duration // the turn for which it is kept free, for an attempt that has waited longer; 0 = open to all
}

// spot is the cores of a host, or one of its GPUs in one of its modes.
type spot struct {
	device int // index; -1 = the cores
	class  int // index in ledger.classes
	mode   berth.SharingMode
	first  int // index of the GPU's first spot: that in the mode to prefer
}

// keeping is claimed and kept of a site, for one GPU alone.
type keeping struct {
	claimed bool
	kept    time.Duration
}

func newLedger(hosts []berth.Host) *ledger {
	l := &ledger{hosts: make([]site, 0, len(hosts)), classes: classesOf(hosts), cordoned: make(map[string]bool)}
	ready, gpus := 0, 0

	for _, h := range hosts {
		if h.State == berth.HostReady {
			ready++
			gpus += len(h.Devices)
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

		s := site{Host: h, capacity: h.CapacityBytes(), spots: l.spotsOf(h.Devices), keeping: make([]keeping, len(h.Devices)), room: make([]int64, len(l.classes))}
		s.gpuCPU = gpuCPU(h)
		s.measure()

		if h.State == berth.HostFormer {
			l.former = append(l.former, s)
		} else {
			l.hosts = append(l.hosts, s)
		}
	}

	l.mayKeep, l.mayKeepGPUs = max(ready/keptFraction, 1), max(gpus/keptFraction, 1)

	for _, sites := range [][]site{l.hosts, l.former} {
		slices.SortFunc(sites, func(a, b site) int { return cmp.Or(cmp.Compare(a.ID, b.ID), b.FormerUntil.Compare(a.FormerUntil)) })
	}

	return l
}

// classesOf are the classes of the hosts' spots, ClassCPU first.
func classesOf(hosts []berth.Host) []berth.DeviceClass {
	classes := []berth.DeviceClass{berth.ClassCPU}

	for _, h := range hosts {
		for _, dev := range h.Devices {
			for _, mode := range dev.Modes() {
				if class := dev.ClassBy(mode); !slices.Contains(classes, class) {
					classes = append(classes, class)
				}
			}
		}
	}

	slices.Sort(classes[1:])

	return classes
}

func (l *ledger) spotsOf(devices []berth.Device) []spot {
	spots := make([]spot, 1, 1+2*len(devices))
	spots[0] = spot{device: -1}

	for i, dev := range devices {
		first := len(spots)
		for _, mode := range modesOf(dev) {
			spots = append(spots, spot{device: i, class: slices.Index(l.classes, dev.ClassBy(mode)), mode: mode, first: first})
		}
	}

	return spots
}

// resolve looks up the demands of requests on the present classes, and numbers
// their sizes: requests with the same demands have one number.
func (l *ledger) resolve(requests []Request) {
	type prefix struct {
		size   int
		on     bool
		demand berth.Demand
	}

	sizes := make(map[prefix]int)
	demands := make([]berth.Demand, len(requests)*len(l.classes))
	on := make([]*berth.Demand, len(demands))

	for i := range requests {
		r := &requests[i]
		from := i * len(l.classes)
		r.size, r.on = 0, on[from:from+len(l.classes)]

		if r.CPUsGiven {
			r.size = -1
		}

		for c, class := range l.classes {
			demand, ok := r.Demands[class]
			if ok {
				demands[from+c] = demand
				r.on[c] = &demands[from+c]
			}

			key := prefix{r.size, ok, demand}
			if sizes[key] == 0 {
				sizes[key] = len(sizes) + 1
			}

			r.size = sizes[key]
		}
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
		if s.closedRule(r) != fits {
			continue
		}

		for class := range r.on {
			d := s.demand(r, class)
			if d == nil || d.DeviceBytes > s.room[class] || s.checkHost(d) != fits {
				continue
			}

			c, ok := s.best(r, d, class)
			c.host, c.trust = i, s.trust(r)
			c.load += s.pullLoad(r) + s.restartLoad(r)

			if ok && (!found || c.better(best)) {
				best, found = c, true
			}
		}
	}

	if !found {
		return berth.Placement{}, false
	}

	return l.book(best, r), true
}

// best is the best spot of a class for a request that the host itself has room for.
func (s *site) best(r *Request, d *berth.Demand, class int) (best candidate, found bool) {
	for i := range s.spots {
		at := &s.spots[i]
		if at.class != class || at.device >= 0 && (s.drains(r, at) || s.checkDevice(d, at) != fits || s.fitsEarlier(r, i)) {
			continue
		}

		c := s.candidate(d, at)
		c.spot = i

		if !found || c.better(best) {
			best, found = c, true
		}
	}

	return best, found
}

// measure finds out how much room the GPUs of the host have.
func (s *site) measure() {
	clear(s.room)

	for i := range s.spots {
		if at := &s.spots[i]; at.device >= 0 && !s.inAnotherMode(at) {
			dev := &s.Devices[at.device]
			s.room[at.class] = max(s.room[at.class], usable(dev)-dev.ReservedBytes)
		}
	}
}

// book books the request on a candidate. A request that must be alone on its host, or its
// GPU, gets all of it: it asked for the largest one at that time. A request that measures
// its shape beside others gets an even part of its GPU's free memory, with the other
// shapes to be measured and one part for later ones: half, if it is the only one.
func (l *ledger) book(c candidate, r *Request) berth.Placement {
	s := &l.hosts[c.host]
	at := &s.spots[c.spot]
	d := *s.demand(r, at.class)
	placement := berth.Placement{HostID: s.ID, Class: l.classes[at.class]}

	if d.Exclusive {
		d.MemoryBytes = max(d.MemoryBytes, berth.AloneBytes(s.capacity, s.MemoryFreeBytes)-s.MemoryReservedBytes)
	}

	switch {
	case d.ExclusiveDevice:
		dev := &s.Devices[at.device]
		d.DeviceBytes = max(d.DeviceBytes, usable(dev)-dev.ReservedBytes)
	case r.Measures && at.device >= 0:
		dev := &s.Devices[at.device]
		d.DeviceBytes = max(d.DeviceBytes, (usable(dev)-dev.ReservedBytes)/int64(l.toMeasure+1)/berth.Granule*berth.Granule)
	}

	placement.Demand = d
	s.TestDue = s.TestDue && !s.FailsStartsOf(r.SweepID) // one test attempt at a time

	if m := s.Missing(r.SweepID); m != nil {
		m.TestDue = false
	}

	s.reserve(&d)

	if at.device >= 0 {
		dev := &s.Devices[at.device]
		dev.ReservedBytes += d.DeviceBytes
		dev.ContextsReserved += contextCount(&d)
		dev.ActivityReserved += d.DeviceActivity
		dev.Attempts++
		dev.Mode = at.mode
		dev.Exclusive = dev.Exclusive || d.ExclusiveDevice
		placement.DeviceID = dev.ID
		s.measure()
	}

	return placement
}

// reserve books a demand on the host itself.
func (s *site) reserve(d *berth.Demand) {
	s.CPUMilliReserved += d.CPUMilli
	s.MemoryReservedBytes += d.MemoryBytes
	s.Attempts++
	s.Exclusive = s.Exclusive || d.Exclusive
}

// impossible reports whether no host could ever hold the request, even when it is empty.
// A lost host counts: it may come back, until it is removed. So does a former host; if
// only a former host could hold the request, it returns the longest counting one. A
// host without the request's data set counts, too, because its worker may get it.
// Without hosts, or without a GPU that the request could use, no request is impossible:
// a host with one may come, or come back.
func (l *ledger) impossible(r *Request) (former *site, impossible bool) {
	if !r.hasClass() {
		return nil, false
	}

	for i := range l.hosts {
		if l.hosts[i].large(r) {
			return nil, false
		}
	}

	for i := range l.former {
		if s := &l.former[i]; s.large(r) && (former == nil || s.FormerUntil.After(former.FormerUntil)) {
			former = s
		}
	}

	return former, former == nil && len(l.hosts) > 0
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

		switch m := s.Missing(r.SweepID); {
		case m == nil:
			other = other || s.takes(r) && s.holds(r)
		case !m.Cordoned && slices.Contains(r.FailedHosts, s.ID):
			hosts = append(hosts, s.ID)
		}
	}

	if !other {
		return nil
	}

	return hosts
}

// size is the largest that any one host has of memory and cores, and any one
// GPU of each class of memory.
type size struct {
	memory, cpu int64
	device      []int64 // by class
}

// largest is the size of the hosts that take attempts now; of all, when none does.
func (l *ledger) largest() size {
	all := size{device: make([]int64, len(l.classes))}
	ready := size{device: make([]int64, len(l.classes))}

	for i := range l.hosts {
		s := &l.hosts[i]
		all.include(s)

		if s.State == berth.HostReady {
			ready.include(s)
		}
	}

	if ready.memory == 0 && ready.cpu == 0 {
		return all
	}

	return ready
}

func (z *size) include(s *site) {
	z.memory, z.cpu = max(z.memory, s.capacity), max(z.cpu, s.CPUMilli)

	for _, at := range s.spots[1:] {
		z.device[at.class] = max(z.device[at.class], s.Devices[at.device].CapacityBytes())
	}
}

// dominantShare is the largest fraction that the request takes of any dimension,
// on the class where that is least; 0 without hosts.
func (z *size) dominantShare(r *Request) float64 {
	least, found := 0.0, false

	for class, d := range r.on {
		if d == nil {
			continue
		}

		part := max(share(d.MemoryBytes, z.memory), share(d.CPUMilli, z.cpu), share(d.DeviceBytes, z.device[class]))
		if !found || part < least {
			least, found = part, true
		}
	}

	return least
}
