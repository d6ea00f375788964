package memory

import (
	"time"

	"github.com/berthml/berth"
)

// floorRuns is how many whole runs must succeed after an out-of-memory before
// the shape forgets it. It equals enoughSamples: as many runs as earn the narrow
// margin also outweigh one trial that needed more.
const floorRuns = enoughSamples

// Observe returns the footprint after one more attempt of the shape. prior is
// nil for the first attempt. ok is false when there is nothing to store: the
// attempt taught nothing and there was no prior.
//
//   - A run that ended well, or was stopped early, raises the peaks, enters the means, and ages the
//     floor.
//   - A run that ended well and was not measured throughout (u.Unseen, or its
//     GPU could not be read) only raises the peaks: the shape needs at least that
//     much, and the next run has to complete the measurement.
//   - An out-of-memory sets the floor, when it says something about the shape.
//   - A run in unified memory teaches nothing.
func Observe(prior *berth.Footprint, key string, source berth.FootprintSource, kind berth.FailureKind, u berth.Usage, reserved berth.Demand) (f berth.Footprint, ok bool) {
	if prior != nil {
		f = *prior
	}

	if f.Source == berth.FootprintPredicted { // the measurement replaces the prediction
		f = berth.Footprint{Class: f.Class}
	}

	f.ShapeKey = key

	if reserved.SpillBytes > 0 { // its memory is partly on the GPU and partly on the host, and the driver tells neither
		return taughtNothing(prior)
	}

	whole := kind == berth.FailureOK || kind == berth.FailureNoResult || kind == berth.FailureNotFinite || kind == berth.FailurePruned

	switch {
	case kind == berth.FailureHostOOM && setsFloor(f, u, reserved):
		f.MemoryFloorBytes, f.FloorPassed = max(f.MemoryFloorBytes, reserved.MemoryBytes), 0

		if f.Samples == 0 && f.MemoryPeakBytes == 0 {
			f.Source = berth.FootprintRaised
		}
	case kind == berth.FailureDeviceOOM && setsDeviceFloor(f, reserved):
		f.DeviceFloorBytes, f.DevicePassed = max(f.DeviceFloorBytes, reserved.DeviceBytes), 0

		if f.Samples == 0 && f.DevicePeakBytes == 0 {
			f.Source = berth.FootprintRaised
		}
	case whole && u.Samples > 0:
		f.MemoryPeakBytes = max(f.MemoryPeakBytes, u.MemoryPeakBytes)
		f.DevicePeakBytes = max(f.DevicePeakBytes, u.DevicePeakBytes)

		if u.Unseen > 0 || reserved.DeviceBytes > 0 && !u.DeviceMeasured() {
			f.Source = better(f.Source, berth.FootprintPartial)

			break
		}

		f.CPUMilli = cpuNeed(f.CPUMilli, u)
		f.DeviceActivity = activityOf(f.DeviceActivity, u)
		f.Duration = duration(f, source, u.Wall)
		f.Samples++
		f.Source = better(f.Source, source)

		if source == berth.FootprintFull { // a short run may end before memory peaks
			f.MemoryFloorBytes, f.FloorPassed = aged(f.MemoryFloorBytes, f.FloorPassed)
			f.DeviceFloorBytes, f.DevicePassed = aged(f.DeviceFloorBytes, f.DevicePassed)
		}
	default:
		return taughtNothing(prior)
	}

	return f, true
}

func taughtNothing(prior *berth.Footprint) (berth.Footprint, bool) {
	if prior == nil {
		return berth.Footprint{}, false
	}

	return *prior, true
}

// setsFloor reports whether an out-of-memory tells what other trials of the
// shape need. It does not
//
//   - when nothing shows that the container came to its limit: the program only
//     said so;
//   - when the attempt had a machine for itself: that is the end of one trial's
//     retries, and says that this trial is infeasible;
//   - when a run of the shape has succeeded with more: the peak says it already.
func setsFloor(f berth.Footprint, u berth.Usage, reserved berth.Demand) bool {
	atLimit := u.OOMKills > 0 || berth.NearMemoryLimit(u.MemoryPeakBytes, reserved.MemoryBytes)

	return atLimit && !reserved.Exclusive && reserved.MemoryBytes > f.MemoryPeakBytes
}

// setsDeviceFloor is setsFloor for the memory of a GPU. There one large allocation
// fails as a whole, so the measured peak need not come near the reservation.
func setsDeviceFloor(f berth.Footprint, reserved berth.Demand) bool {
	return !reserved.ExclusiveDevice && reserved.DeviceBytes > f.DevicePeakBytes
}

// aged forgets an out-of-memory once floorRuns whole runs have succeeded since.
// What they needed is in the peak by then.
func aged(floor int64, passed int) (int64, int) {
	if floor == 0 || passed+1 >= floorRuns {
		return 0, 0
	}

	return floor, passed + 1
}

// Known reports whether a footprint can size a reservation without a probe: at
// least one run was measured throughout, or it is predicted.
func Known(f *berth.Footprint) bool {
	return f != nil && (f.Samples > 0 || f.Source == berth.FootprintPredicted)
}

// Predicted reports whether no class of a shape was measured, but some is predicted.
func Predicted(known berth.Footprints) bool {
	predicted := false

	for _, f := range known {
		if f.Samples > 0 {
			return false
		}

		predicted = predicted || f.Source == berth.FootprintPredicted
	}

	return predicted
}

// Sized reports whether a footprint can size an MPS client's reservation of a GPU: a whole
// run was measured, or a part, such as until its first metric.
func Sized(f *berth.Footprint) bool {
	return f != nil && f.DevicePeakBytes > 0 && (Known(f) || f.Source == berth.FootprintPartial)
}

// ObserveRunning returns the footprint after a part of a run on a GPU, which goes on.
func ObserveRunning(prior *berth.Footprint, key string, u berth.Usage) (f berth.Footprint) {
	if prior != nil {
		f = *prior
	}

	f.ShapeKey = key
	f.MemoryPeakBytes = max(f.MemoryPeakBytes, u.MemoryPeakBytes)
	f.DevicePeakBytes = max(f.DevicePeakBytes, u.DevicePeakBytes)

	if f.Source != berth.FootprintPredicted { // a prediction of a whole run says more, and has risen with its peaks
		f.Source = better(f.Source, berth.FootprintPartial)
	}

	return f
}

// KnownAnywhere reports whether a shape is Known on some class of device. On
// another one its first run measures it (Sizes): that needs no probe.
func KnownAnywhere(known berth.Footprints) bool {
	for _, f := range known {
		if Known(&f) {
			return true
		}
	}

	return false
}

// NeedsNoGPU reports whether a shape was measured on a GPU, and held nothing of it.
func NeedsNoGPU(f *berth.Footprint) bool {
	return Known(f) && f.DevicePeakBytes == 0
}

// better keeps the more trusted source: a full run replaces a short one, and a
// short one is not replaced by a run with a gap.
func better(old, recent berth.FootprintSource) berth.FootprintSource {
	if old == berth.FootprintFull || (old == berth.FootprintShort && recent == berth.FootprintPartial) {
		return old
	}

	return recent
}

// duration is the mean over whole runs. Until one was seen, a short one has to do.
func duration(f berth.Footprint, source berth.FootprintSource, wall berth.Duration) berth.Duration {
	switch {
	case f.Source != berth.FootprintFull:
		return wall
	case source != berth.FootprintFull:
		return f.Duration
	default:
		return (f.Duration*berth.Duration(f.Samples) + wall) / berth.Duration(f.Samples+1)
	}
}

// cpuNeed is the larger of earlier attempts' use and this one's. On a full host
// a job gets less than it needs: booking that would pack more jobs onto cores
// that are short already, so such a reading does not count.
func cpuNeed(known int64, u berth.Usage) int64 {
	if u.CPUContended {
		return known
	}

	return max(known, cores(u))
}

// cores is the mean number of cores used, in thousandths.
func cores(u berth.Usage) int64 {
	if time.Duration(u.Wall) <= 0 {
		return 0
	}

	return int64(u.CPU) * 1000 / int64(u.Wall)
}

const (
	// leastActive is how long activity must be measured before it says something: it
	// is measured once a second.
	leastActive = berth.Duration(2 * time.Second)
	// activityWeight is the weight of the newest run in the mean, so that a mean of
	// runs on crowded GPUs is forgotten after a few.
	activityWeight = 4
)

// activityOf is how busy a shape keeps its GPU, after one more run. On a GPU that
// others kept full it got less than it needs: that is a lower bound.
func activityOf(known berth.DeviceActivity, u berth.Usage) berth.DeviceActivity {
	if u.DeviceActive < leastActive {
		return known
	}

	unknown := known == berth.DeviceActivity{}

	merge := func(known, recent int64) int64 {
		switch {
		case u.DeviceContended:
			return max(known, recent)
		case unknown:
			return recent
		default:
			return known + (recent-known)/activityWeight
		}
	}

	mean := u.MeanActivity()

	return berth.DeviceActivity{
		SMMilli:     merge(known.SMMilli, mean.SMMilli),
		DRAMMilli:   merge(known.DRAMMilli, mean.DRAMMilli),
		TensorMilli: merge(known.TensorMilli, mean.TensorMilli),
	}
}
