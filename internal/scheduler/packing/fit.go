package packing

import (
	"slices"

	"github.com/berthml/berth"
)

// rule is the first hard constraint that a request breaks at a spot.
type rule uint8

const (
	fits rule = iota
	breaksState
	breaksDataset
	breaksSecret
	breaksInputs
	breaksCordon
	breaksKept
	breaksExclusive
	breaksMemory
	breaksFreeMemory
	breaksDisk
	breaksCPU
	breaksAttempts
	breaksDeviceState
	breaksDeviceKept
	breaksDeviceMode
	breaksDeviceExclusive
	breaksDeviceBytes
	breaksDeviceFree
	breaksDeviceAttempts
	breaksContexts
	breaksActivity
	breaksAdvice
	breaksAdvisedMode
)

// checkSpot returns the first constraint that the request breaks at a spot of the
// host; constraints that can never be met come first. The request can use the
// spot's class.
func (s *site) checkSpot(r *Request, at *spot) rule {
	d := s.demand(r, at.class)

	if broken := s.lacks(r); broken != fits {
		return broken
	}

	if broken := s.never(d, at); broken != fits {
		return broken
	}

	if broken := s.closedRule(r); broken != fits {
		return broken
	}

	switch { // the even part of the cores is too little then, too
	case at.device >= 0 && s.drains(r, at):
		return breaksAdvisedMode
	case at.device >= 0 && s.hasAdvised(at):
		return breaksAdvice
	}

	if broken := s.checkHost(d); broken != fits {
		return broken
	}

	if at.device < 0 {
		return fits
	}

	return s.checkDevice(d, at)
}

// closedRule returns why the host takes no request like this, of any size.
func (s *site) closedRule(r *Request) rule {
	switch {
	case s.State != berth.HostReady:
		return breaksState
	case s.CordonedFor(r.SweepID) && !s.testDue(r.SweepID):
		return breaksCordon
	case s.DiskLow():
		return breaksDisk
	case s.lacks(r) != fits:
		return s.lacks(r)
	case !s.hasInputs(r):
		return breaksInputs
	case slices.Contains(r.avoid, s.ID):
		return breaksCordon
	case s.kept > 0:
		return breaksKept
	default:
		return fits
	}
}

// never returns the constraint that the demand would break at the spot with
// nothing else on the host.
func (s *site) never(d *berth.Demand, at *spot) rule {
	switch {
	case d.MemoryBytes > s.capacity:
		return breaksMemory
	case d.CPUMilli > s.CPUMilli:
		return breaksCPU
	case at.device < 0:
		return fits
	}

	switch dev := &s.Devices[at.device]; {
	case d.DeviceBytes > dev.CapacityBytes():
		return breaksDeviceBytes
	case contextCount(d) > dev.ContextsBy(at.mode):
		return breaksContexts
	default:
		return fits
	}
}

// checkHost checks the demand on the host itself.
func (s *site) checkHost(d *berth.Demand) rule {
	switch {
	case s.Exclusive || d.Exclusive && s.Attempts > 0:
		return breaksExclusive
	case s.MemoryReservedBytes+d.MemoryBytes > s.capacity:
		return breaksMemory
	case s.CPUMilliReserved+d.CPUMilli > s.CPUMilli:
		return breaksCPU
	case s.MaxAttempts > 0 && s.Attempts >= s.MaxAttempts:
		return breaksAttempts
	case s.MemoryReservedBytes+d.MemoryBytes > s.MemoryFreeBytes:
		return breaksFreeMemory
	default:
		return fits
	}
}

// checkDevice checks the demand on a GPU.
func (s *site) checkDevice(d *berth.Demand, at *spot) rule {
	dev := &s.Devices[at.device]

	switch {
	case dev.ProblemBy(at.mode) != "":
		return breaksDeviceState
	case s.keeping[at.device].kept > 0:
		return breaksDeviceKept
	case s.inAnotherMode(at):
		return breaksDeviceMode
	case dev.Exclusive || d.ExclusiveDevice && dev.Attempts > 0:
		return breaksDeviceExclusive
	case dev.ReservedBytes+d.DeviceBytes > dev.CapacityBytes():
		return breaksDeviceBytes
	case dev.Limit() > 0 && dev.Attempts >= dev.Limit():
		return breaksDeviceAttempts
	case dev.ContextsReserved+contextCount(d) > dev.ContextsBy(at.mode):
		return breaksContexts
	case dev.ReservedBytes+d.DeviceBytes > dev.FreeBytes:
		return breaksDeviceFree
	case s.hasAdvised(at):
		return breaksAdvice
	case dev.Attempts >= max(dev.Advice.AtOnce, 1) && dev.ActivityReserved+d.DeviceActivity > activityLimit(dev, d):
		return breaksActivity
	default:
		return fits
	}
}

// activityLimit is how busy a GPU may be with the demand there, by measurement. While
// the sum stays below a full GPU, each attempt adds its whole speed. Beyond, the first
// one too many still uses the rest, and more add nothing: two that take 60 % each
// share a GPU, two that take 95 % do not (pairs of matrix products and of memory
// streams, one H200: 1.2 to 1.7 times as fast together as one after the other when
// starts take half of the time, 0.9 to 1.08 times without; 2026-11-22 and 24). The
// less an attempt takes, the more may come: it takes less beside others, as it waits
// for cores.
//
// The limit is the same for an attempt that fills a GPU and joins small ones, and for
// small ones that join it: else the large one would wait as long as any small one
// runs.
func activityLimit(dev *berth.Device, d *berth.Demand) int64 {
	return 2*berth.FullActivity - min(d.DeviceActivity, dev.ActivityReserved, berth.FullActivity)
}

// takes reports whether the host takes more than test attempts of a request's sweep.
func (s *site) takes(r *Request) bool {
	return s.State == berth.HostReady && s.lacks(r) == fits && s.hasInputs(r) && !s.CordonedFor(r.SweepID) && !slices.Contains(r.avoid, s.ID)
}

// lacks returns why the host never takes the request: it has no such data set, or no
// such key of secrets.
func (s *site) lacks(r *Request) rule {
	switch {
	case missingDataset(r.Datasets, s.Datasets) != "":
		return breaksDataset
	case missing(r.SecretKeys, s.SecretKeys) != "":
		return breaksSecret
	default:
		return fits
	}
}

// hasInputs reports whether the host has the outputs of earlier stages that the request reads.
func (s *site) hasInputs(r *Request) bool { return !r.Inputs || slices.Contains(r.InputHosts, s.ID) }

// missingDataset is the first data set that the host does not have in the wanted version; empty = it has all.
func missingDataset(wanted, has []string) string {
	i := slices.IndexFunc(wanted, func(id string) bool { return !berth.HasDataset(has, id) })
	if i < 0 {
		return ""
	}

	return wanted[i]
}

// missing is the first of the names that the host does not have; empty = it has all.
func missing(names, has []string) string {
	for _, name := range names {
		if !slices.Contains(has, name) {
			return name
		}
	}

	return ""
}

// testDue reports whether a cordoned host may take a test attempt of a sweep.
func (s *site) testDue(sweepID string) bool {
	m := s.Missing(sweepID)

	return (s.TestDue || !s.FailsStartsOf(sweepID)) && (m == nil || !m.Cordoned || m.TestDue)
}

// inAnotherMode reports whether the attempts on a spot's GPU share it in another
// mode: all of them end before it changes.
func (s *site) inAnotherMode(at *spot) bool {
	dev := &s.Devices[at.device]

	return dev.Attempts > 0 && dev.Mode != at.mode
}

// fitsEarlier reports whether the request also fits the GPU of a spot in a mode
// that comes before the spot's.
func (s *site) fitsEarlier(r *Request, i int) bool {
	for j := s.spots[i].first; j < i; j++ {
		at := &s.spots[j]
		if d := s.demand(r, at.class); d != nil && s.checkHost(d) == fits && s.checkDevice(d, at) == fits {
			return true
		}
	}

	return false
}

// inWantedMode reports whether a spot is in the mode in which the request waits for its
// GPU. Of the modes in which the request fits an empty GPU, that is the mode of
// the attempts there, or else the first.
func (s *site) inWantedMode(r *Request, at *spot) bool {
	if at.device < 0 {
		return true
	}

	const no, cannot, could, now = 0, 1, 2, 3

	best, found := no, at

	for i := at.first; i < len(s.spots) && s.spots[i].device == at.device; i++ {
		here := &s.spots[i]
		d := s.demand(r, here.class)
		rank := no

		switch {
		case d == nil:
		case s.never(d, here) != fits:
			rank = cannot
		case s.Devices[at.device].Attempts > 0 && !s.inAnotherMode(here):
			rank = now
		default:
			rank = could
		}

		if rank > best {
			best, found = rank, here
		}
	}

	return found == at
}

// spotsFor are the spots whose class the request can use.
func (s *site) spotsFor(r *Request) func(yield func(*spot) bool) {
	return func(yield func(*spot) bool) {
		for i := range s.spots {
			if at := &s.spots[i]; r.on[at.class] != nil && !yield(at) {
				return
			}
		}
	}
}

// holds reports whether the host would hold the request with nothing else on it.
func (s *site) holds(r *Request) bool { return s.lacks(r) == fits && s.large(r) }

// large reports whether the host has the size for the request.
func (s *site) large(r *Request) bool {
	for at := range s.spotsFor(r) {
		if s.never(s.demand(r, at.class), at) == fits {
			return true
		}
	}

	return false
}

// holdsWhenDone reports whether the request fits the spot once the attempts of
// the host have ended. It does not where programs outside Berth hold the
// memory, files fill the disk, or containers do not start: waiting would only
// block the host.
func (s *site) holdsWhenDone(r *Request, at *spot) bool {
	d := s.demand(r, at.class)
	if !s.takes(r) || s.DiskLow() || s.never(d, at) != fits || d.MemoryBytes > s.MemoryFreeBytes {
		return false
	}

	if at.device < 0 {
		return true
	}

	dev := &s.Devices[at.device]

	return dev.ProblemBy(at.mode) == "" && d.DeviceBytes <= dev.FreeBytes
}

// shortage is the part of a host or its GPU, in its scarcest dimension, that
// must become free before the demand fits: 0 to 1.
func (s *site) shortage(d *berth.Demand, at *spot) float64 {
	memory := s.MemoryReservedBytes + d.MemoryBytes - min(s.capacity, s.MemoryFreeBytes)
	cpu := s.CPUMilliReserved + d.CPUMilli - s.CPUMilli

	if s.Exclusive || d.Exclusive { // everything has to end
		memory, cpu = s.MemoryReservedBytes, s.CPUMilliReserved
	}

	short := max(share(memory, s.capacity), share(cpu, s.CPUMilli), 0)

	if s.MaxAttempts > 0 && s.Attempts >= s.MaxAttempts {
		short = max(short, share(1, int64(s.MaxAttempts)))
	}

	if at.device < 0 {
		return short
	}

	return max(short, deviceShortage(&s.Devices[at.device], d, at))
}

func deviceShortage(dev *berth.Device, d *berth.Demand, at *spot) float64 {
	total := usable(dev)

	if dev.Exclusive || d.ExclusiveDevice || dev.Attempts > 0 && dev.Mode != at.mode { // everything has to end
		return share(dev.ReservedBytes, total)
	}

	short := max(share(dev.ReservedBytes+d.DeviceBytes-total, total),
		share(int64(dev.ContextsReserved+contextCount(d)-dev.ContextsBy(at.mode)), int64(dev.ContextsBy(at.mode))), 0)

	if limit := dev.Limit(); limit > 0 && dev.Attempts >= limit {
		short = max(short, share(1, int64(limit)))
	}

	if advised := dev.Advice.AtOnce; dev.Advice.Capped {
		return max(short, share(int64(dev.Attempts+1-advised), int64(advised)))
	}

	return max(short, share(dev.ActivityReserved+d.DeviceActivity-activityLimit(dev, d), activityLimit(dev, d)))
}

// usable is the memory of a GPU that attempts may hold together now: programs
// outside Berth may leave less than its capacity.
func usable(dev *berth.Device) int64 { return min(dev.CapacityBytes(), dev.FreeBytes) }

// contextCount is a demand's number of processes on a GPU, at least one.
func contextCount(d *berth.Demand) int { return max(d.Contexts, 1) }

// share is part divided by whole; 0 for a whole of 0.
func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}

	return float64(part) / float64(whole)
}
