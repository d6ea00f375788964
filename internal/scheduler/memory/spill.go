package memory

import "github.com/berthml/berth"

// spill returns the demand of a trial that is larger than any GPU, of a sweep with
// gpu_memory_spill: the largest GPU alone, never by MPS, in unified memory, and as much
// more of the host's memory as the GPU lacks. spills is false when the trial is not
// known to be larger; ok as for Sizes.
//
// The sweep file's value is not cut: the placer reports that no host could hold it.
// A demand after an out-of-memory is cut to the memory of a host with such a GPU.
func (f *Fleet) spill(a Ask, known berth.Footprints) (demands berth.Demands, ok, spills bool) {
	if !a.Resources.GPUMemorySpill {
		return nil, false, false
	}

	alone := a
	alone.Resources.GPUSharing = string(berth.SharingExclusive)
	alone.Apart = false

	if len(f.classesNow(alone)) == 0 { // with device auto: it runs on cores
		return nil, false, false
	}

	largest := int64(0)
	classes := f.classesEver(alone)

	for _, class := range classes {
		_, capacity := f.of(class)
		largest = max(largest, capacity)
	}

	need := a.bytesBeyond(largest)
	if largest <= 0 || need <= largest {
		return nil, false, false
	}

	fitting, lacking := berth.Demands{}, berth.Demands{}

	for _, class := range classes {
		hosts, capacity := f.of(class)
		if capacity < largest {
			continue
		}

		if d, ok := spillOn(alone, KnownOn(class, known), hosts, need-largest, largest); ok {
			fitting[class] = d
		} else {
			lacking[class] = d
		}
	}

	if len(fitting) == 0 {
		return lacking, false, true
	}

	return fitting, true, true
}

// bytesBeyond is how much of a GPU a trial needs by its sweep file, and by its out-of-memory
// where it had the largest GPU alone, with largest bytes: 0 = it may fit.
func (a Ask) bytesBeyond(largest int64) int64 {
	need := int64(a.Resources.GPUMemory)

	last := a.Last
	if last == nil {
		return need
	}

	had := last.Demand
	whole := had.ExclusiveDevice && (had.DeviceBytes >= largest || berth.NearMemoryLimit(last.PeakBytes, largest))

	switch {
	case had.SpillBytes > 0 && !last.Device: // the host's memory ran out
		return max(need, had.DeviceBytes+had.SpillBytes)
	case had.SpillBytes > 0, last.Device && whole:
		return max(need, Grow(max(had.DeviceBytes, largest)+had.SpillBytes, 0))
	case last.Device && last.Count >= last.Max-1: // there is no attempt to try the whole GPU first
		return max(need, Grow(had.DeviceBytes, last.PeakBytes))
	default:
		return need
	}
}

// spillOn is spill on one class, whose largest GPU lacks this many bytes.
func spillOn(a Ask, f *berth.Footprint, hosts []berth.Host, lacks, largest int64) (berth.Demand, bool) {
	d, ok := hostSize(a, f, hosts)
	d.Contexts, d.ExclusiveDevice, d.DeviceBytes = 1, true, largest
	d.SpillBytes = roundUp(lacks, berth.Granule)

	if a.Last == nil {
		d.MemoryBytes += d.SpillBytes

		return d, true
	}

	room := roomsFor("", 0, hosts).ever.CapacityBytes
	if d.Exclusive { // it has the whole host already
		d.MemoryBytes -= min(d.SpillBytes, d.MemoryBytes/2)
	}

	most := roundDown(room - d.MemoryBytes)
	grows := !a.Last.Device || min(d.SpillBytes, most) > a.Last.Demand.SpillBytes
	d.SpillBytes = max(min(d.SpillBytes, most), 0)
	d.MemoryBytes += d.SpillBytes

	return d, ok && grows && d.SpillBytes > 0 && a.Last.Count < a.Last.Max
}

// aloneFrom is the number of out-of-memory failures from which the next attempt has a
// GPU alone: the last one; with spill also the one before it, so that the last attempt
// knows its need.
func (a Ask) aloneFrom() int {
	if a.Resources.GPUMemorySpill {
		return max(a.Last.Max-2, 1)
	}

	return a.Last.Max - 1
}
