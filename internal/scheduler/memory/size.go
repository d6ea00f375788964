package memory

import "github.com/berthml/berth"

// Ask is the input of an attempt's demand, besides the footprints of its shape
// and the hosts.
type Ask struct {
	SweepID   string
	Resources berth.Resources
	Last      *berth.LastOOM // the trial's newest out-of-memory; nil = none
	Apart     bool           // it shares no GPU by MPS: a fault of one client ends all
}

// Size returns what the next attempt of a trial asks for. ok is false when the
// trial ran out of memory and no host has more: d is then its need.
//
//   - It is sized for the hosts that take attempts of the sweep now. Only for a
//     measured need, or for the trial's own out-of-memory, does it wait for a
//     lost host, or for the replacement of a former one.
//   - A raise by another trial's out-of-memory waits neither for such a host nor
//     for programs outside Berth to end.
//   - The user's value stands, except for a trial that ran out of it.
func Size(a Ask, f *berth.Footprint, recent []berth.Host) (d berth.Demand, ok bool) {
	measured := Reserve(measuredOnly(f))
	r := roomsFor(a.SweepID, Demand(a.Resources, f, Room{}).CPUMilli, recent)
	d = Demand(a.Resources, f, r.roomHolding(measured))

	switch {
	case a.Last == nil && (a.Resources.Memory > 0 || !Known(f)):
		return d, true
	case a.Last == nil:
		d.MemoryBytes = r.belowOthers(d.MemoryBytes, measured)

		return d, true
	}

	d, ok = r.grownDemand(*a.Last, d, measured)
	d.MemoryBytes = r.belowOthers(d.MemoryBytes, max(Grow(a.Last.Demand.MemoryBytes, 0), measured))

	return d, ok
}

// rooms is the memory of the hosts with enough cores for an attempt.
type rooms struct {
	now   Room // of the hosts that take attempts of the sweep
	there Room // of all, as a lost one may come back
	ever  Room // with former ones, for which a replacement may come
}

func roomsFor(sweepID string, cpuMilli int64, recent []berth.Host) (r rooms) {
	for i := range recent {
		h := &recent[i]
		if h.CPUMilli < cpuMilli {
			continue
		}

		r.ever.include(h)

		if h.State != berth.HostFormer {
			r.there.include(h)
		}

		if h.State == berth.HostReady && !h.CordonedFor(sweepID) {
			r.now.include(h)
		}
	}

	return r
}

// roomHolding is the first room that holds this many bytes; there when none does.
func (r rooms) roomHolding(bytes int64) Room {
	for _, room := range []Room{r.now, r.there, r.ever} {
		if room.CapacityBytes >= max(bytes, 1) {
			return room
		}
	}

	return r.there
}

// belowOthers returns the bytes to ask for instead of need: the part that programs
// outside Berth leave, where that is less than need and at least least.
func (r rooms) belowOthers(need, least int64) int64 {
	left := berth.AloneBytes(r.now.CapacityBytes, r.now.FreeBytes)
	if left >= max(least, 1) && left < need {
		return left
	}

	return need
}

// grownDemand is the demand of a trial that ran out of memory: d, when another run was measured to
// need more than this trial had, or a step more. Where no open host has a whole step it
// waits for one; when none may come, the largest host's memory must do.
func (r rooms) grownDemand(last berth.LastOOM, d berth.Demand, measured int64) (berth.Demand, bool) {
	if last.Count >= last.Max {
		return last.Demand, false
	}

	if min(measured, d.MemoryBytes) > last.Demand.MemoryBytes {
		return d, true
	}

	step := Grow(last.Demand.MemoryBytes, last.PeakBytes)

	room := r.roomHolding(step)
	if room.CapacityBytes < step {
		room = r.roomHolding(last.Demand.MemoryBytes + 1)
	}

	if room.CapacityBytes == 0 { // nothing is known of any host
		room.CapacityBytes = step
	}

	next, ok := AfterOOM(last.Demand, last.PeakBytes, last.Count, last.Max, room)
	if !ok {
		d.MemoryBytes = step

		return d, false
	}

	next.MemoryBytes = min(max(next.MemoryBytes, d.MemoryBytes), room.CapacityBytes)
	next.CPUMilli = d.CPUMilli

	return next, true
}
