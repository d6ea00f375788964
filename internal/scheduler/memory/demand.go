package memory

import "github.com/berthml/berth"

// Demand is the need of the next attempt of a shape whose trial has not run out
// of memory. The spec's value stands, whatever happened to other trials of the
// shape. Otherwise it is the footprint's, and at least an unmeasured shape's
// until a run was measured throughout.
func Demand(r berth.Resources, f *berth.Footprint, room Room) berth.Demand {
	d := berth.Demand{MemoryBytes: int64(r.Memory), CPUMilli: r.ThreadCapMilli()}

	if f != nil {
		d.CPUMilli = cpuOf(r, *f)
	}

	if d.MemoryBytes == 0 {
		d.MemoryBytes = measured(f, room, r.ThreadCapMilli())
	}

	return d
}

func measured(f *berth.Footprint, room Room, cpuMilli int64) int64 {
	need := int64(0)
	if f != nil {
		need = Reserve(*f)
	}

	if !Known(f) || f.MemoryPeakBytes == 0 {
		need = max(need, ForProbe(room, cpuMilli))
	}

	if room.CapacityBytes > 0 {
		need = min(need, room.CapacityBytes)
	}

	return need
}

func cpuOf(r berth.Resources, f berth.Footprint) int64 {
	if r.CPUs > 0 {
		return int64(r.CPUs)
	}

	return ReserveCPU(f, r.ThreadCapMilli())
}
