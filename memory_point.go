package berth

import (
	"cmp"
	"slices"
	"time"
)

// MaxMemoryPoints is how many points of memory are kept of an attempt: as many as a
// page can draw side by side, and 70 to 107 KiB of PostgreSQL's disk (docs/production.md).
const MaxMemoryPoints = 500

// MemoryPoint is the most that an attempt held in one interval of its life, and the
// busiest that it kept its GPU. A figure that is nil was not measured.
type MemoryPoint struct {
	Second      int       `json:"second"`                 // when the interval begins, since the attempt's start; from 0
	At          time.Time `json:"-"`                      // the same as a time; zero in what a worker writes
	HostBytes   *int64    `json:"host_bytes,omitempty"`   // the container's working set, as Usage.MemoryPeakBytes
	DeviceBytes *int64    `json:"device_bytes,omitempty"` // of its GPU's memory
	SMMilli     *int64    `json:"sm_milli,omitempty"`     // the attempt's part of its GPU's SMs that work, in thousandths
}

// MemoryInterval is how many seconds each point of an attempt stands for that has been
// measured up to a second of its life: 1, and twice as many whenever its points would be
// more than MaxMemoryPoints. No worker has to remember it, so one that takes an attempt
// over keeps the intervals of the one before.
func MemoryInterval(second int) int {
	every := 1
	for second/every >= MaxMemoryPoints {
		every *= 2
	}

	return every
}

// ThinMemory merges points into intervals of every seconds, each as large as its largest
// point: a peak stays. The result is ascending, without empty intervals.
func ThinMemory(points []MemoryPoint, every int) []MemoryPoint {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b MemoryPoint) int { return cmp.Compare(a.Second, b.Second) })

	kept := points[:0]

	for _, p := range points {
		p.Second -= p.Second % every

		if last := len(kept) - 1; last >= 0 && kept[last].Second == p.Second {
			kept[last] = kept[last].with(p)
		} else {
			kept = append(kept, p)
		}
	}

	return kept
}

func (p MemoryPoint) with(o MemoryPoint) MemoryPoint {
	p.HostBytes = larger(p.HostBytes, o.HostBytes)
	p.DeviceBytes = larger(p.DeviceBytes, o.DeviceBytes)
	p.SMMilli = larger(p.SMMilli, o.SMMilli)

	return p
}

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}

	return a
}
