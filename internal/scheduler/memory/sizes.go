package memory

import (
	"slices"

	"github.com/berthml/berth"
)

const (
	// unmeasuredShare is the part of a GPU that must be free for a shape unmeasured
	// on its class. The shape gets the whole GPU, because nothing bounds its use:
	// this only decides how much programs outside Berth may use there.
	unmeasuredShare = 4

	// guessShare is the part of a GPU that must be free for such a shape as an MPS
	// client, which bounds it. leastGuess is the least guess: twice the memory of the
	// transfer jobs of our measurements (910 MiB, one H200, 2026-11-21). The measuring
	// run gets more, where more is free (packing.Request.Measures); a trial that needs
	// more still is tried again, without charge.
	guessShare = 32
	leastGuess = 2048 * MiB
)

// Sizes returns the demand of a trial's next attempt on each class of device that it
// can use, by its footprints there and by the hosts that have the class. ok is false
// when the trial ran out of memory and no class has more: demands then hold its
// need. A demand larger than any GPU spills into the host's memory, if the sweep
// file allows it.
//
// With device auto a trial runs on GPUs where an open host has an open GPU, or will have
// one in a moment, else on cores; and on cores when its shape used nothing of a GPU. It
// waits for other GPUs only when it is too large for those. With device gpu it waits for
// all. A shape unmeasured on a kind of GPU runs alone on one, or as an MPS client at a
// guess (Guesses): its first run measures it. An Ask apart shares by time slices only;
// where its sweep file insists on MPS, it is an MPS client that has the GPU alone.
func Sizes(a Ask, known berth.Footprints, recent []berth.Host) (demands berth.Demands, ok bool) {
	return NewFleet(recent).Sizes(a, known)
}

// Sizes is Sizes for these hosts.
func (f *Fleet) Sizes(a Ask, known berth.Footprints) (demands berth.Demands, ok bool) {
	if demands, ok, spills := f.spill(a, known); spills {
		return demands, ok
	}

	classes := f.classesNow(a)
	if a.Resources.Device != berth.DeviceGPU && slices.ContainsFunc(classes, func(c berth.DeviceClass) bool { return NeedsNoGPU(KnownOn(c, known)) }) {
		classes = nil
	}

	if len(classes) == 0 && a.Resources.Device != berth.DeviceGPU {
		a.Last = onCores(a.Last)
		d, ok := Size(a, known.Of(berth.ClassCPU), f.hosts)

		return berth.Demands{berth.ClassCPU: d}, ok
	}

	if demands, ok := f.sizesOn(a, classes, known); ok && f.fitsSome(a, classes) {
		return demands, true
	}

	return f.sizesOn(a, f.classesEver(a), known)
}

// fitsSome reports whether one of the classes has a GPU as large as the sweep file says.
func (f *Fleet) fitsSome(a Ask, classes []berth.DeviceClass) bool {
	return slices.ContainsFunc(classes, func(c berth.DeviceClass) bool {
		_, largest := f.of(c)

		return int64(a.Resources.GPUMemory) <= largest
	})
}

// sizesOn is Sizes on these classes of GPU.
func (f *Fleet) sizesOn(a Ask, classes []berth.DeviceClass, known berth.Footprints) (demands berth.Demands, ok bool) {
	fitting, lacking := berth.Demands{}, berth.Demands{}

	for _, class := range classes {
		d, ok := f.sizeOn(a, class, KnownOn(class, known))
		if ok {
			fitting[class] = d
		} else {
			lacking[class] = d
		}
	}

	if len(fitting) == 0 && len(lacking) > 0 {
		return lacking, false
	}

	return fitting, true
}

// onCores is the part of an out-of-memory that is valid for an attempt without
// a GPU: it leaves out the GPU's memory.
func onCores(last *berth.LastOOM) *berth.LastOOM {
	if last == nil || last.Device {
		return nil
	}

	host := *last.WithoutSpill()
	host.Demand.DeviceBytes, host.Demand.Contexts, host.Demand.ExclusiveDevice = 0, 0, false

	return &host
}

// shares reports whether a device's mode is as the sweep file wants it, and as the
// trial can have it.
func (a Ask) shares(mode berth.SharingMode) bool {
	switch wanted := berth.SharingMode(a.Resources.GPUSharing); wanted {
	case berth.SharingMPS, berth.SharingTimeSlicing:
		return mode == wanted
	case berth.SharingExclusive: // alone there is nothing to share
		return mode != berth.SharingMPS
	default: // auto: the placer prefers MPS
		return !a.Apart || mode != berth.SharingMPS
	}
}

// KnownOn is the footprint of a shape on a class, or else on its twin: an MPS
// client needs as much of a GPU as another process does within 1 % (908 and 910
// MiB, one H200, 2026-11-21). It may have kept below its bound, so the margin is
// that of a partial measurement.
func KnownOn(class berth.DeviceClass, known berth.Footprints) *berth.Footprint {
	own, twin := known.Of(class), known.Of(class.Twin())
	if Known(own) || !Known(twin) {
		return own
	}

	f := *twin
	f.Source = berth.FootprintPartial

	if own != nil { // its own out-of-memory here
		f.DeviceFloorBytes = max(f.DeviceFloorBytes, own.DeviceFloorBytes)
	}

	return &f
}

// sizeOn is Sizes on one class of GPU.
func (f *Fleet) sizeOn(a Ask, class berth.DeviceClass, known *berth.Footprint) (berth.Demand, bool) {
	hosts, largest := f.of(class)

	d, ok := hostSize(a, known, hosts)
	d.Contexts = 1
	d.ExclusiveDevice = berth.SharingMode(a.Resources.GPUSharing) == berth.SharingExclusive || a.Apart && class.Mode() == berth.SharingMPS

	return sizeDevice(a, class, d, known, largest), ok && deviceGrows(a.Last, largest)
}

// hostSize is the demand on its host of an attempt that uses a GPU.
func hostSize(a Ask, f *berth.Footprint, hosts []berth.Host) (berth.Demand, bool) {
	host := a
	host.Last = a.Last.WithoutSpill()
	had := host.Last

	if had != nil && had.Device { // the host's memory was enough
		host.Last = nil
	}

	d, ok := Size(host, f, hosts)
	if had != nil && had.Device {
		d.MemoryBytes = max(d.MemoryBytes, had.Demand.MemoryBytes)
	}

	if a.Resources.CPUs == 0 {
		d.CPUMilli = gpuCPUShare(d.CPUMilli)
	}

	if f != nil {
		d.DeviceActivity = f.DeviceActivity.Busiest()
	}

	return d, ok
}

// gpuCPUShare returns the CPU to reserve for an attempt on a GPU that was measured
// to keep cpuMilli busy, or may: two thirds, in steps of 0.05 core. While some
// wait for the GPU, others compute: of jobs that kept one core busy alone, 16
// cores did most with 24 at once, and no more with 40 (one H200 by MPS,
// 2026-11-21 and 22).
func gpuCPUShare(cpuMilli int64) int64 {
	const step = 50

	return max(cpuMilli*2/3/step*step, min(cpuMilli, minCPUMilli))
}

// sizeDevice adds the demand for a GPU; the largest of the class has this many bytes
// to give. An attempt whose trial may spill next gets all of the largest GPU, so that
// one that runs out of it is known to be larger.
func sizeDevice(a Ask, class berth.DeviceClass, d berth.Demand, f *berth.Footprint, largest int64) berth.Demand {
	d = sizeOnDevice(a, class, d, f, largest)
	if a.Resources.GPUMemorySpill && a.Last != nil && d.ExclusiveDevice {
		d.DeviceBytes = largest
	}

	return d
}

func sizeOnDevice(a Ask, class berth.DeviceClass, d berth.Demand, f *berth.Footprint, largest int64) berth.Demand {
	bounded := class.Mode() == berth.SharingMPS && !d.ExclusiveDevice

	switch {
	case a.Resources.GPUMemory > 0:
		d.DeviceBytes = int64(a.Resources.GPUMemory)
	case Known(f) && f.DevicePeakBytes > 0, Sized(f) && bounded:
		d.DeviceBytes = min(ReserveDevice(*f), largest)
	case bounded:
		d.DeviceBytes = guessBytes(f, largest)
	default:
		d.ExclusiveDevice = true
		d.DeviceBytes = max(largest/unmeasuredShare, berth.Granule)
	}

	// What the trial's own end taught the shape is no reason to leave its ladder.
	last := a.Last
	if last == nil || !last.Device || min(ReserveDevice(measuredOnly(f)), d.DeviceBytes) > last.Demand.DeviceBytes && !last.Demand.ExclusiveDevice {
		return d
	}

	d.DeviceBytes = min(max(Grow(last.Demand.DeviceBytes, last.PeakBytes), d.DeviceBytes), largest)
	d.ExclusiveDevice = d.ExclusiveDevice || last.Count >= a.aloneFrom() || d.DeviceBytes == largest

	return d
}

// Guesses reports whether the demands of an ask on GPUs are guesses: nothing that runs
// of its shape was measured yet on any class that it can use, and as a client of MPS it
// would share a GPU all the same.
func Guesses(a Ask, known berth.Footprints, demands berth.Demands) bool {
	shares := false

	for class, d := range demands {
		if class == berth.ClassCPU || a.Resources.GPUMemory > 0 || Sized(KnownOn(class, known)) {
			return false
		}

		shares = shares || !d.ExclusiveDevice
	}

	return shares
}

// guessBytes is the memory of an MPS client of an unmeasured shape: the amount that
// another one ran out of, or else a share.
func guessBytes(f *berth.Footprint, largest int64) int64 {
	share := max(min(max(roundDown(largest/guessShare), leastGuess), roundDown(largest/2)), berth.Granule)
	if f != nil {
		share = max(share, ReserveDevice(*f))
	}

	return min(share, largest)
}

// deviceGrows reports whether a class has more than the amount that the trial ran out
// of.
func deviceGrows(last *berth.LastOOM, largest int64) bool {
	if last == nil || !last.Device {
		return true
	}

	return last.Count < last.Max && (!last.Demand.ExclusiveDevice || last.Demand.DeviceBytes < largest)
}
