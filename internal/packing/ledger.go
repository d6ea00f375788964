package packing

import (
	"cmp"
	"slices"

	"github.com/berthml/berth"
)

// ledger is a working copy of the hosts on which placements are tried.
type ledger struct {
	hosts   []berth.Host // by id
	drained map[string]bool
}

func newLedger(hosts []berth.Host) *ledger {
	l := &ledger{hosts: slices.Clone(hosts), drained: make(map[string]bool)}

	for i := range l.hosts {
		l.hosts[i].Devices = slices.Clone(l.hosts[i].Devices)
		slices.SortFunc(l.hosts[i].Devices, func(a, b berth.Device) int { return cmp.Compare(a.ID, b.ID) })
	}

	slices.SortFunc(l.hosts, func(a, b berth.Host) int { return cmp.Compare(a.ID, b.ID) })

	return l
}

// candidate is a place that fits, with what decides between several.
type candidate struct {
	host, device int     // device is -1 for the CPU
	load         float64 // dominant share in use afterwards; the least wins: spread first, pack when needed
	slack        int64   // memory left afterwards; the least wins: best fit
}

// place books the demand on the best candidate, or says for every host why not.
func (l *ledger) place(d berth.Demand) (berth.Placement, []berth.Rejection, bool) {
	var (
		best       candidate
		found      bool
		rejections []berth.Rejection
	)

	for i := range l.hosts {
		c, rejection, ok := l.try(i, d)
		if !ok {
			rejections = append(rejections, rejection)

			continue
		}

		if !found || c.load < best.load || (c.load == best.load && c.slack < best.slack) {
			best, found = c, true
		}
	}

	if !found {
		if len(l.hosts) == 0 {
			rejections = []berth.Rejection{{
				Dimension: berth.DimensionState,
				Reason:    "no machine is connected; start `berth worker` on one",
			}}
		}

		return berth.Placement{}, rejections, false
	}

	return l.book(best, d), nil, true
}

// try checks one host and, when a GPU is wanted, its devices.
func (l *ledger) try(i int, d berth.Demand) (candidate, berth.Rejection, bool) {
	h := &l.hosts[i]

	if rejection, ok := fitsHost(h, d, l.drained[h.ID]); !ok {
		return candidate{}, rejection, false
	}

	c := candidate{
		host:   i,
		device: -1,
		load:   hostLoad(h, d),
		slack:  capacity(h) - h.MemoryReservedBytes - d.MemoryBytes,
	}
	if d.DeviceBytes == 0 {
		return c, berth.Rejection{}, true
	}

	rejection := reject(h, "", berth.DimensionDevice, 1, 0, true)
	found := false

	for j := range h.Devices {
		dev := &h.Devices[j]

		why, ok := fitsDevice(h, dev, d)
		if !ok {
			if !found && (rejection.DeviceID == "" || !why.Never) {
				rejection = why
			}

			continue
		}

		load := float64(dev.ReservedBytes+d.DeviceBytes) / float64(dev.MemoryBytes-dev.HeadroomBytes)
		slack := dev.MemoryBytes - dev.HeadroomBytes - dev.ReservedBytes - d.DeviceBytes

		if !found || load < c.load || (load == c.load && slack < c.slack) {
			c.device, c.load, c.slack, found = j, load, slack, true
		}
	}

	return c, rejection, found
}

func (l *ledger) book(c candidate, d berth.Demand) berth.Placement {
	h := &l.hosts[c.host]
	h.CPUMilliReserved += d.CPUMilli
	h.MemoryReservedBytes += d.MemoryBytes
	h.Attempts++
	h.Exclusive = h.Exclusive || (d.Exclusive && c.device < 0)

	placement := berth.Placement{HostID: h.ID}

	if c.device >= 0 {
		dev := &h.Devices[c.device]
		dev.ReservedBytes += d.DeviceBytes
		dev.ContextsReserved += max(d.Contexts, 1)
		placement.DeviceID = dev.ID
	}

	return placement
}

// drain keeps the host that is nearest to fitting from taking anything else in
// this round. It reports whether it found one.
func (l *ledger) drain(rejections []berth.Rejection) bool {
	best := -1

	for i, r := range rejections {
		if r.HostID == "" || r.Never || r.Dimension == berth.DimensionState || l.drained[r.HostID] {
			continue
		}

		if best < 0 || r.Needed-r.Free < rejections[best].Needed-rejections[best].Free {
			best = i
		}
	}

	if best < 0 {
		return false
	}

	l.drained[rejections[best].HostID] = true

	return true
}

// dominantShare is the largest fraction of any one host dimension that the
// demand takes of the largest host; 0 without hosts.
func (l *ledger) dominantShare(d berth.Demand) float64 {
	var memory, cpu, device int64

	for i := range l.hosts {
		memory = max(memory, capacity(&l.hosts[i]))
		cpu = max(cpu, l.hosts[i].CPUMilli)

		for j := range l.hosts[i].Devices {
			device = max(device, l.hosts[i].Devices[j].MemoryBytes)
		}
	}

	return max(share(d.MemoryBytes, memory), share(d.CPUMilli, cpu), share(d.DeviceBytes, device))
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}

	return float64(part) / float64(whole)
}

// capacity is what leases on a host may hold together.
func capacity(h *berth.Host) int64 { return h.MemoryBytes - h.MemoryHeadroomBytes }

func hostLoad(h *berth.Host, d berth.Demand) float64 {
	return max(share(h.MemoryReservedBytes+d.MemoryBytes, capacity(h)), share(h.CPUMilliReserved+d.CPUMilli, h.CPUMilli))
}
