package memory

import (
	"time"

	"github.com/berthml/berth"
)

// Observe returns the footprint after one more attempt of the shape: peaks
// only rise, means are over all samples. prior is nil for the first attempt.
// An attempt that measured nothing and did not run out of memory changes
// nothing and returns ok false when there was no prior.
func Observe(prior *berth.Footprint, key string, source berth.FootprintSource, kind berth.FailureKind, u berth.Usage, reservedBytes int64) (f berth.Footprint, ok bool) {
	if prior != nil {
		f = *prior
	}

	f.ShapeKey = key
	whole := kind == berth.FailureOK || kind == berth.FailureNoResult || kind == berth.FailureNotFinite

	switch {
	case kind == berth.FailureHostOOM:
		f.MemoryFloorBytes = max(f.MemoryFloorBytes, reservedBytes)
		f.MemoryPeakBytes = max(f.MemoryPeakBytes, u.MemoryPeakBytes)

		if f.Samples == 0 {
			f.Source = berth.FootprintRaised
		}
	case whole && u.Samples > 0:
		f.MemoryPeakBytes = max(f.MemoryPeakBytes, u.MemoryPeakBytes)
		f.DevicePeakBytes = max(f.DevicePeakBytes, u.DevicePeakBytes)
		f.CPUMilli = cpuNeed(f.CPUMilli, u)
		f.Duration = duration(f, source, u.Wall)
		f.Samples++
		f.Source = better(f.Source, source)
	default:
		return f, prior != nil
	}

	return f, true
}

// Known reports whether a footprint can size a reservation without a probe.
func Known(f *berth.Footprint) bool {
	return f != nil && f.Samples > 0
}

// better keeps the more trusted source: a full run replaces a short one.
func better(old, recent berth.FootprintSource) berth.FootprintSource {
	if old == berth.FootprintFull {
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

// cpuNeed is the larger of what earlier attempts and this one used. On a full
// host a job gets less than it needs: booking what it got would pack more jobs
// onto cores that are short already, so such a reading counts for nothing.
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
