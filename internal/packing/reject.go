package packing

import (
	"fmt"
	"slices"

	"github.com/berthml/berth"
)

// Rejections says for each candidate host why the request is not there: first
// the former host that it waits for, then the hosts that could hold it, then the
// others, each by id; the first limit of them (0 = all); nil when it is placed. A
// limit of the sweep is a single rejection. What is free is what the whole round leaves,
// which is never more than what the request saw.
func (d Decision) Rejections(limit int) []berth.Rejection {
	switch {
	case d.Placed:
		return nil
	case d.Limited():
		return []berth.Rejection{d.sweep}
	case len(d.ledger.hosts) == 0:
		return []berth.Rejection{{
			Dimension: berth.DimensionState,
			Reason:    "no machine is connected; start `berth worker` on one",
		}}
	}

	if most := len(d.ledger.hosts) + 1; limit <= 0 || limit > most {
		limit = most
	}

	rejections := make([]berth.Rejection, 0, limit)
	if d.former != nil {
		rejections = append(rejections, d.former.gone())
	}

	for _, could := range []bool{true, false} {
		for i := 0; i < len(d.ledger.hosts) && len(rejections) < limit; i++ {
			if s := d.ledger.hosts[i]; s.holds(&d.request.Demand) == could {
				if s.ID == d.KeptHost {
					s.kept = 0
				}

				rejections = append(rejections, s.reject(d.request))
			}
		}
	}

	return rejections
}

// gone says what became of a former host, and how long the trial waits for another.
func (s *site) gone() berth.Rejection {
	return berth.Rejection{
		HostID: s.ID, HostName: s.Name, Dimension: berth.DimensionState,
		Reason: fmt.Sprintf("host %s: %s, and no other host could hold the attempt; the trial waits until %s for one that does, and ends then",
			s.Name, s.Problem, s.FormerUntil.UTC().Format("2006-01-02 15:04 MST")),
	}
}

// cordonReason says why the host takes only test attempts of a sweep, or none of the trial.
func (s *site) cordonReason(r *Request) string {
	switch {
	case slices.Contains(r.avoid, s.ID):
		return "host " + s.Name + ": the image was missing there; another host may have it, and Berth tries this one again later. " +
			"The last failure: " + s.Missing(r.SweepID).Reason
	case s.FailsStartsOf(r.SweepID):
		return "host " + s.Name + ": cordoned, as it failed to start several trials in a row; Berth tests it now and then. The last failure: " + s.CordonReason
	}

	return "host " + s.Name + ": cordoned for this sweep, as its image was missing there several times in a row; " +
		"Berth tests it now and then. The last failure: " + s.Missing(r.SweepID).Reason
}

// stateReason says why the host takes no attempts, and what lets it take some.
func (s *site) stateReason() string {
	if s.Problem != "" {
		return "host " + s.Name + ": " + s.Problem
	}

	if s.State == berth.HostLost {
		return "host " + s.Name + ": its worker does not answer; the trial waits for it to come back"
	}

	return "host " + s.Name + ": drained; `berth host ready " + s.Name + "` lets it take attempts"
}

// sweepRejection says why the sweep keeps a request from a place. What a lost
// host holds is left out of what runs for the sake of its retries: siblings in
// their places would run beside them once the host is back.
func sweepRejection(limit SweepLimit, away bool) berth.Rejection {
	taken := limit.Running + limit.waiting
	if !away {
		taken += limit.Away
	}

	switch {
	case limit.Paused:
		return berth.Rejection{Dimension: berth.DimensionSweep, Reason: "the sweep takes no new trials now"}
	case limit.MaxParallel > 0 && taken >= limit.MaxParallel:
		return berth.Rejection{
			Dimension: berth.DimensionSweep,
			Needed:    int64(taken) + 1,
			Free:      int64(limit.MaxParallel),
			Reason:    limit.reason(),
		}
	default:
		return berth.Rejection{}
	}
}

// reason says what takes all places of the sweep.
func (l SweepLimit) reason() string {
	if l.Running >= l.MaxParallel {
		return "the sweep's max_parallel is reached"
	}

	text := fmt.Sprintf("the sweep's max_parallel is %d: %d running", l.MaxParallel, l.Running)
	if l.waiting > 0 {
		text += fmt.Sprintf(", %d waiting for a host that is kept free", l.waiting)
	}

	if l.Away > 0 {
		text += fmt.Sprintf(", %d kept for attempts of a lost or unready host, "+
			"which go on there or on another one; `berth host remove` frees the places of a host that is gone for good", l.Away)
	}

	return text
}

// reject says which constraint check found broken, and by how much.
func (s *site) reject(request *Request) berth.Rejection {
	d := &request.Demand
	r := berth.Rejection{HostID: s.ID, HostName: s.Name, Never: !s.holds(d)}
	reserved := *s

	if r.Never {
		reserved.MemoryReservedBytes, reserved.CPUMilliReserved = 0, 0
	}

	switch s.check(request) {
	case breaksState:
		r.Dimension, r.Reason = berth.DimensionState, s.stateReason()
	case breaksCordon:
		r.Dimension, r.Reason = berth.DimensionState, s.cordonReason(request)
	case breaksKept:
		r.Dimension = berth.DimensionState
		r.Reason = fmt.Sprintf("host %s: kept free for an attempt that is overdue, for %d h at most; then it is open for as long",
			s.Name, int(s.kept.Hours()))
	case breaksDisk:
		r.Dimension, r.Needed, r.Free = berth.DimensionDisk, s.DiskHeadroomBytes, s.DiskFreeBytes
	case breaksExclusive:
		r.Dimension, r.Needed = berth.DimensionExclusive, 1
	case breaksMemory:
		r.Dimension, r.Needed, r.Free = berth.DimensionMemory, d.MemoryBytes, s.capacity-reserved.MemoryReservedBytes
	case breaksFreeMemory:
		r.Dimension, r.Needed, r.Free = berth.DimensionFreeMemory, d.MemoryBytes, s.MemoryFreeBytes-s.MemoryReservedBytes
	case breaksCPU:
		r.Dimension, r.Needed, r.Free = berth.DimensionCPU, d.CPUMilli, s.CPUMilli-reserved.CPUMilliReserved
	case breaksAttempts:
		r.Dimension, r.Needed = berth.DimensionAttempts, 1
	case breaksDevice, fits: // room on the roomiest device is not all that a device must have
		s.rejectDevice(d, &r)
	}

	r.Free = max(r.Free, 0)

	return r
}

// rejectDevice says why not the GPU with the most room, or that there is none.
func (s *site) rejectDevice(d *berth.Demand, r *berth.Rejection) {
	if len(s.Devices) == 0 {
		r.Dimension, r.Needed = berth.DimensionDevice, 1

		return
	}

	dev := s.Devices[s.roomiest]
	if r.Never {
		dev = s.widest()
		dev.ReservedBytes, dev.ContextsReserved, dev.Exclusive, dev.FreeBytes = 0, 0, false, dev.MemoryBytes
	}

	r.DeviceID = dev.ID

	switch capacity := deviceCapacity(&dev); {
	case dev.Exclusive || d.Exclusive && dev.ContextsReserved > 0:
		r.Dimension, r.Needed = berth.DimensionExclusive, 1
	case dev.ReservedBytes+d.DeviceBytes > capacity:
		r.Dimension, r.Needed, r.Free = berth.DimensionDeviceBytes, d.DeviceBytes, capacity-dev.ReservedBytes
	case dev.ReservedBytes+d.DeviceBytes > dev.FreeBytes:
		r.Dimension, r.Needed, r.Free = berth.DimensionFreeMemory, d.DeviceBytes, dev.FreeBytes-dev.ReservedBytes
	default:
		r.Dimension, r.Needed, r.Free = berth.DimensionContexts, int64(contexts(d)), int64(dev.MaxContexts-dev.ContextsReserved)
	}
}

// widest is the largest GPU of the host.
func (s *site) widest() berth.Device {
	best := s.Devices[0]
	for _, dev := range s.Devices {
		if deviceCapacity(&dev) > deviceCapacity(&best) {
			best = dev
		}
	}

	return best
}
