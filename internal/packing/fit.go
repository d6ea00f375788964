package packing

import (
	"slices"

	"github.com/berthml/berth"
)

// rule is the first hard constraint that a demand breaks.
type rule uint8

const (
	fits rule = iota
	breaksState
	breaksCordon
	breaksKept
	breaksExclusive
	breaksMemory
	breaksFreeMemory
	breaksDisk
	breaksCPU
	breaksAttempts
	breaksDevice // it has none, or the device says more
)

// check returns the first constraint of the host that is broken, those that
// can never be met first. Of the devices it only asks whether one has room.
func (s *site) check(r *Request) rule {
	d := &r.Demand

	switch {
	case d.MemoryBytes > s.capacity:
		return breaksMemory
	case d.CPUMilli > s.CPUMilli:
		return breaksCPU
	case d.DeviceBytes > 0 && !s.hasDeviceFor(d):
		return breaksDevice
	case s.State != berth.HostReady:
		return breaksState
	case s.cordonedFor(r.SweepID) && !s.testDue(r.SweepID):
		return breaksCordon
	case s.DiskLow():
		return breaksDisk
	case slices.Contains(r.avoid, s.ID):
		return breaksCordon
	case s.kept > 0:
		return breaksKept
	case s.Exclusive || d.Exclusive && d.DeviceBytes == 0 && s.Attempts > 0:
		return breaksExclusive
	case s.MemoryReservedBytes+d.MemoryBytes > s.capacity:
		return breaksMemory
	case s.CPUMilliReserved+d.CPUMilli > s.CPUMilli:
		return breaksCPU
	case s.MaxAttempts > 0 && s.Attempts >= s.MaxAttempts:
		return breaksAttempts
	case s.MemoryReservedBytes+d.MemoryBytes > s.MemoryFreeBytes:
		return breaksFreeMemory
	case d.DeviceBytes > s.room:
		return breaksDevice
	default:
		return fits
	}
}

// cordonedFor is Host.CordonedFor, without a copy of the host where nothing is
// known to fail: it is asked for each request and host.
func (s *site) cordonedFor(sweepID string) bool {
	return (s.CordonedAt != nil || len(s.MissingImages) > 0) && s.CordonedFor(sweepID)
}

// missing is Host.Missing, without a copy of the host.
func (s *site) missing(sweepID string) *berth.MissingImage {
	if len(s.MissingImages) == 0 {
		return nil
	}

	return s.Missing(sweepID)
}

// takes reports whether the host takes more than test attempts of a request's sweep.
func (s *site) takes(r *Request) bool {
	return s.State == berth.HostReady && !s.cordonedFor(r.SweepID) && !slices.Contains(r.avoid, s.ID)
}

// testDue reports whether a cordoned host may take a test attempt of a sweep.
func (s *site) testDue(sweepID string) bool {
	m := s.missing(sweepID)

	return (s.TestDue || !s.FailsStartsOf(sweepID)) && (m == nil || !m.Cordoned || m.TestDue)
}

// holds reports whether the host would hold the demand with nothing else on it.
func (s *site) holds(d *berth.Demand) bool {
	return d.MemoryBytes <= s.capacity && d.CPUMilli <= s.CPUMilli && (d.DeviceBytes == 0 || s.hasDeviceFor(d))
}

// hasDeviceFor reports whether an empty GPU of the host would hold the demand.
func (s *site) hasDeviceFor(d *berth.Demand) bool {
	for i := range s.Devices {
		if deviceHolds(&s.Devices[i], d) {
			return true
		}
	}

	return false
}

func deviceHolds(dev *berth.Device, d *berth.Demand) bool {
	return d.DeviceBytes <= deviceCapacity(dev) && contexts(d) <= dev.MaxContexts
}

// fitsDevice checks every constraint of one GPU.
func fitsDevice(dev *berth.Device, d *berth.Demand) bool {
	return !dev.Exclusive && (!d.Exclusive || dev.ContextsReserved <= 0) &&
		dev.ReservedBytes+d.DeviceBytes <= min(deviceCapacity(dev), dev.FreeBytes) &&
		dev.ContextsReserved+contexts(d) <= dev.MaxContexts
}

// holdsWhenDone reports whether the request fits once the attempts of the host
// have ended. Where programs outside Berth hold what it needs, files fill the
// disk, or containers do not start, waiting for that would only block the host.
func (s *site) holdsWhenDone(r *Request) bool {
	d := &r.Demand

	return s.takes(r) && !s.DiskLow() && s.holds(d) && d.MemoryBytes <= s.MemoryFreeBytes &&
		(d.DeviceBytes == 0 || slices.ContainsFunc(s.Devices, func(dev berth.Device) bool { return deviceHoldsWhenDone(&dev, d) }))
}

func deviceHoldsWhenDone(dev *berth.Device, d *berth.Demand) bool {
	return deviceHolds(dev, d) && d.DeviceBytes <= dev.FreeBytes
}

// shortage is the part of a host, in its scarcest dimension, that must become
// free before the demand fits: 0 to 1.
func (s *site) shortage(d *berth.Demand) float64 {
	memory := s.MemoryReservedBytes + d.MemoryBytes - min(s.capacity, s.MemoryFreeBytes)
	cpu := s.CPUMilliReserved + d.CPUMilli - s.CPUMilli

	if s.Exclusive || d.Exclusive && d.DeviceBytes == 0 { // everything has to end
		memory, cpu = s.MemoryReservedBytes, s.CPUMilliReserved
	}

	short := max(share(memory, s.capacity), share(cpu, s.CPUMilli), 0)

	if s.MaxAttempts > 0 && s.Attempts >= s.MaxAttempts {
		short = max(short, share(1, int64(s.MaxAttempts)))
	}

	if d.DeviceBytes > 0 {
		short = max(short, s.deviceShortage(d))
	}

	return short
}

// deviceShortage is the shortage of the GPU that is nearest to fitting.
func (s *site) deviceShortage(d *berth.Demand) float64 {
	least := 1.0

	for i := range s.Devices {
		dev := &s.Devices[i]
		if !deviceHoldsWhenDone(dev, d) {
			continue
		}

		total := min(deviceCapacity(dev), dev.FreeBytes)
		bytes := share(dev.ReservedBytes+d.DeviceBytes-total, total)
		slots := share(int64(dev.ContextsReserved+contexts(d)-dev.MaxContexts), int64(dev.MaxContexts))

		if dev.Exclusive || d.Exclusive {
			bytes, slots = share(dev.ReservedBytes, total), 0
		}

		least = min(least, max(bytes, slots, 0))
	}

	return least
}

// contexts is what a demand takes of a GPU: a process has one at least.
func contexts(d *berth.Demand) int { return max(d.Contexts, 1) }

// deviceCapacity is what leases on a GPU may hold together.
func deviceCapacity(dev *berth.Device) int64 { return dev.MemoryBytes - dev.HeadroomBytes }

// share is a part of a whole; 0 when there is none.
func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}

	return float64(part) / float64(whole)
}
