package forecast

import (
	"slices"

	"github.com/berthml/berth"
)

// quiet is a copy of the hosts that are not tested: when a cordon ends depends on what a
// test attempt shows.
func quiet(hosts []berth.Host) []berth.Host {
	out := slices.Clone(hosts)

	for i := range out {
		h := &out[i]
		h.TestDue = false
		h.MissingImages = slices.Clone(h.MissingImages)

		for j := range h.MissingImages {
			h.MissingImages[j].TestDue = false
		}
	}

	return out
}

// emptied are the hosts with nothing on them.
func emptied(hosts []berth.Host) []berth.Host {
	out := copied(hosts)

	for i := range out {
		h := &out[i]
		h.CPUMilliReserved, h.MemoryReservedBytes, h.Attempts, h.Exclusive, h.FetchBytes = 0, 0, 0, false, 0

		for j := range h.Devices {
			dev := &h.Devices[j]
			dev.ReservedBytes, dev.ContextsReserved, dev.ActivityReserved, dev.Attempts, dev.Exclusive = 0, 0, 0, 0, false
		}
	}

	return out
}

// copied are hosts that can be booked.
func copied(hosts []berth.Host) []berth.Host {
	out := slices.Clone(hosts)
	for i := range out {
		out[i].Devices = slices.Clone(out[i].Devices)
	}

	return out
}

// book adds what an attempt takes of a host and its GPU.
func book(h *berth.Host, dev *berth.Device, d berth.Demand, class berth.DeviceClass) {
	h.CPUMilliReserved += d.CPUMilli
	h.MemoryReservedBytes += d.MemoryBytes
	h.Attempts++
	h.Exclusive = h.Exclusive || d.Exclusive

	if dev == nil {
		return
	}

	dev.ReservedBytes += d.DeviceBytes
	dev.ContextsReserved += max(d.Contexts, 1)
	dev.ActivityReserved += d.DeviceActivity
	dev.Attempts++
	dev.Exclusive = dev.Exclusive || d.ExclusiveDevice

	if dev.Mode != berth.SharingExclusive {
		dev.Mode = class.Mode()
	}
}

// release takes it away again.
func release(h *berth.Host, dev *berth.Device, d berth.Demand, activity int64) {
	h.CPUMilliReserved = max(h.CPUMilliReserved-d.CPUMilli, 0)
	h.MemoryReservedBytes = max(h.MemoryReservedBytes-d.MemoryBytes, 0)
	h.Attempts = max(h.Attempts-1, 0)
	h.Exclusive = h.Exclusive && !d.Exclusive

	if dev == nil {
		return
	}

	dev.ReservedBytes = max(dev.ReservedBytes-d.DeviceBytes, 0)
	dev.ContextsReserved = max(dev.ContextsReserved-max(d.Contexts, 1), 0)
	dev.ActivityReserved = max(dev.ActivityReserved-activity, 0)
	dev.Attempts = max(dev.Attempts-1, 0)
	dev.Exclusive = dev.Exclusive && !d.ExclusiveDevice
}
