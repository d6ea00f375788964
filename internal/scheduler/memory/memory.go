// Package memory turns the measurements of a shape into the reservation of its
// next attempt. It is pure arithmetic over bytes; docs/packing.md has the rules
// and their reasons.
package memory

import "github.com/berthml/berth"

// MiB is 2^20 bytes.
const MiB = 1 << 20

const (
	// hostFloor is the least margin over a measured peak of host memory, and
	// wholeHostFloor over that of a whole run: the spread of one TensorFlow shape
	// over repeated runs stays below 30 MiB (629-648 MiB, 2 cores, 2026-11-21).
	hostFloor      = 64 * MiB
	wholeHostFloor = 48 * MiB
	// deviceFloor covers the choice of cuDNN algorithm and lazily loaded modules
	// without a whole measured run. Whole runs of a shape differ by at most 32 MiB
	// (878 and 910 MiB with other data), and within one sweep not at all: 54 of 9
	// shapes and 72 of another (one H200, 2026-11-21 and 24). wholeDeviceFloor is four
	// times that.
	deviceFloor      = 256 * MiB
	wholeDeviceFloor = 128 * MiB
	// measuredStep is what a reservation by a measured peak is rounded up to, so that
	// runs of one shape that differ by noise reserve the same.
	measuredStep = 16 * MiB
	// enoughSamples is how many measured attempts earn the narrow margin.
	enoughSamples = 3
	// probeBytes is the reservation of an unmeasured shape: twice the need of
	// the largest Keras example of our measurements on a CPU.
	probeBytes = 4096 * MiB
	// leastProbeBytes is the least guess on a machine with little memory per core:
	// half again the need of the largest TensorFlow shape of our measurements on a
	// CPU (648 MiB, 2026-11-21).
	leastProbeBytes = 1024 * MiB
	// oomStep is the least growth after an out-of-memory.
	oomStep = 512 * MiB
	// raiseFactor bounds how far an out-of-memory raises siblings above the
	// shape's measured need. Trials of one shape in examples/oom need three
	// times as much as the first of them measured (885 against 299 MiB). A trial
	// that needs more than four times as much is an outlier, and grows alone.
	raiseFactor = 4
	// minCPUMilli is the least share of a core that is booked, so that a job
	// that mostly waits is not packed without bound.
	minCPUMilli = 100
)

// Reserve returns the bytes of host memory to reserve for a shape with this
// footprint: the peak with a margin of 10 % (5 % from three samples on, 20 %
// for a partial measurement), at least 64 MiB over it, and 48 over that of a whole
// run. A reservation of the shape that ran out of memory raises that to the next step
// of Grow; once a run was measured, to no more than four times the need, or 512 MiB
// more. Zero when nothing is known.
func Reserve(f berth.Footprint) int64 {
	return reserve(f, f.MemoryPeakBytes, f.MemoryFloorBytes, leastMargin(f, hostFloor, wholeHostFloor), Known(&f))
}

// leastMargin is the least margin over the peak of a footprint: whole over that of a whole
// run, or else part.
func leastMargin(f berth.Footprint, part, whole int64) int64 {
	if f.Source == berth.FootprintFull {
		return whole
	}

	return part
}

// reserve is Reserve of one kind of memory, with the least margin over its peak. An
// attempt ran out with ranOut bytes, 0 = none did; bounded says whether the peak bounds
// what that raises.
func reserve(f berth.Footprint, peak, ranOut, margin int64, bounded bool) int64 {
	need := int64(0)
	if peak > 0 {
		need = roundUp(max(withMargin(peak, f), peak+margin), measuredStep)
	}

	if ranOut == 0 {
		return need
	}

	raised := Grow(ranOut, 0)
	if bounded && need > 0 { // no more than one trial's out-of-memory may raise the others
		raised = min(raised, max(need*raiseFactor, need+oomStep))
	}

	return max(need, raised)
}

// ReserveDevice is Reserve for the memory of a GPU: at least 128 MiB over the peak
// of a whole run, and 256 over another's.
func ReserveDevice(f berth.Footprint) int64 {
	return reserve(f, f.DevicePeakBytes, f.DeviceFloorBytes, leastMargin(f, deviceFloor, wholeDeviceFloor), true)
}

// measuredOnly is a footprint without the raise by an out-of-memory of its shape, on
// the host and on the GPU; zero of nil.
func measuredOnly(f *berth.Footprint) (measured berth.Footprint) {
	if f != nil {
		measured = *f
	}

	measured.MemoryFloorBytes, measured.DeviceFloorBytes = 0, 0

	return measured
}

func withMargin(peak int64, f berth.Footprint) int64 {
	percent := int64(10)

	switch {
	case f.Source == berth.FootprintPartial || f.Source == berth.FootprintShort:
		percent = 20
	case f.Samples >= enoughSamples:
		percent = 5
	}

	return peak + peak*percent/100
}

// ReserveCPU returns the thousandths of a core to book for a footprint: the
// measured mean plus 10 %, in steps of 0.05 core, never above the thread cap
// the job was measured under.
func ReserveCPU(f berth.Footprint, threadCapMilli int64) int64 {
	if f.CPUMilli == 0 {
		return threadCapMilli
	}

	const step = 50
	booked := (f.CPUMilli*110/100 + step - 1) / step * step

	return min(max(booked, minCPUMilli), threadCapMilli)
}

// ForProbe returns the bytes to reserve for an attempt of an unmeasured shape
// with cpuMilli thousandths of a core. It is the least of 4 GiB; a quarter of
// the largest host, so that probes of several shapes run side by side; and the
// share of a host's memory that goes with those cores, so that every core of a
// wide machine has one to run.
func ForProbe(room Room, cpuMilli int64) int64 {
	if room.CapacityBytes <= 0 {
		return probeBytes
	}

	size := min(probeBytes, room.CapacityBytes/4)
	if room.PerCoreBytes > 0 {
		size = min(size, max(room.PerCoreBytes*cpuMilli/1000, leastProbeBytes))
	}

	return max(roundDown(size), berth.Granule)
}

// Grow returns the next reservation after one ran out of memory with the given
// observed peak: the largest of 1.5 times the reservation, 1.25 times the peak
// and 512 MiB more.
func Grow(reservedBytes, peakBytes int64) int64 {
	return roundUp(max(reservedBytes+reservedBytes/2, peakBytes+peakBytes/4, reservedBytes+oomStep), berth.Granule)
}

// Room is the memory that the machines offer to one attempt.
type Room struct {
	CapacityBytes int64 // the most that an empty host gives
	FreeBytes     int64 // the same less the current use of programs outside Berth; 0 = not known
	PerCoreBytes  int64 // of a host's memory, for each of its cores; 0 = not known
}

// include raises the room to what a host has for one attempt, and has now.
func (r *Room) include(h *berth.Host) {
	capacity := h.CapacityBytes()
	r.CapacityBytes = max(r.CapacityBytes, capacity)
	r.PerCoreBytes = max(r.PerCoreBytes, capacity*1000/max(h.CPUMilli, 1))

	if h.State == berth.HostReady {
		r.FreeBytes = max(r.FreeBytes, min(capacity, h.MemoryFreeBytes))
	}
}

// AfterOOM returns the demand of the attempt that follows an out-of-memory of
// host memory. ooms counts the trial's out-of-memory attempts so far and
// maxAttempts bounds them; the last one gets a host for itself and all it has:
// at least this, and more where its host has more once it is placed.
// ok is false when there is nothing larger to try: the trial is infeasible.
func AfterOOM(last berth.Demand, peakBytes int64, ooms, maxAttempts int, room Room) (next berth.Demand, ok bool) {
	if ooms >= maxAttempts || last.MemoryBytes >= room.CapacityBytes {
		return last, false
	}

	next = last
	next.MemoryBytes = min(Grow(last.MemoryBytes, peakBytes), room.CapacityBytes)

	if ooms == maxAttempts-1 {
		next.Exclusive = true
		next.MemoryBytes = max(next.MemoryBytes, berth.AloneBytes(room.CapacityBytes, room.FreeBytes))
	}

	return next, true
}

func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }

func roundDown(n int64) int64 { return n / berth.Granule * berth.Granule }
