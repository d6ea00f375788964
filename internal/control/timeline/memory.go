package timeline

import (
	"cmp"
	"slices"

	"github.com/berthml/berth"
)

// MemoryInterval is how many seconds each point of an attempt stands for that has been
// measured up to a second of its life: 1, and twice as many whenever its points would be
// more than MaxMemoryPoints. No worker has to remember it, so one that takes an attempt
// over keeps the intervals of the one before.
func MemoryInterval(second int) int {
	every := 1
	for second/every >= berth.MaxMemoryPoints {
		every *= 2
	}

	return every
}

// ThinMemory merges points into intervals of every seconds, each as large as its largest
// point: a peak stays. The result is ascending, without empty intervals.
func ThinMemory(points []berth.MemoryPoint, every int) []berth.MemoryPoint {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b berth.MemoryPoint) int { return cmp.Compare(a.Second, b.Second) })

	kept := points[:0]

	for _, p := range points {
		p.Second -= p.Second % every

		if last := len(kept) - 1; last >= 0 && kept[last].Second == p.Second {
			kept[last] = largest(kept[last], p)
		} else {
			kept = append(kept, p)
		}
	}

	return kept
}

// largest has the larger of each figure.
func largest(p, o berth.MemoryPoint) berth.MemoryPoint {
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
