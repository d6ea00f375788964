package memory

import "github.com/berthml/berth"

// Demand is what the next attempt of a shape needs when none ran out of
// memory: what the spec says, else the footprint with its margin, else what an
// unmeasured shape gets. capacityBytes is the most a host has; 0 = not known.
func Demand(r berth.Resources, f *berth.Footprint, capacityBytes int64) berth.Demand {
	d := berth.Demand{MemoryBytes: int64(r.Memory), CPUMilli: r.ThreadCapMilli()}

	if f != nil {
		d.MemoryBytes = max(d.MemoryBytes, floorOnly(r, *f))
		d.CPUMilli = cpuOf(r, *f)
	}

	if d.MemoryBytes == 0 {
		d.MemoryBytes = ForProbe(capacityBytes)
	}

	if capacityBytes > 0 { // only what the spec says may be more than there is
		d.MemoryBytes = max(min(d.MemoryBytes, capacityBytes), int64(r.Memory))
	}

	return d
}

// floorOnly is the footprint's reservation. Where the spec names a size, only
// an out-of-memory under that size may raise it.
func floorOnly(r berth.Resources, f berth.Footprint) int64 {
	if r.Memory > 0 {
		f.MemoryPeakBytes = 0
	}

	if f.MemoryPeakBytes > 0 || f.MemoryFloorBytes > 0 {
		return Reserve(f)
	}

	return 0
}

func cpuOf(r berth.Resources, f berth.Footprint) int64 {
	if r.CPUs > 0 {
		return int64(r.CPUs)
	}

	return ReserveCPU(f, r.ThreadCapMilli())
}
