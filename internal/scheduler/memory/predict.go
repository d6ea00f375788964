package memory

import (
	"math"
	"slices"

	"github.com/berthml/berth"
)

// MostSiblings are read of a family, the newest.
const MostSiblings = 100

const (
	// leastSiblings must be measured: what one of them needs says nothing of the others.
	leastSiblings = 2
	// hostSpread and deviceSpread are by how much repeated runs of a shape differ (629-648 MiB of
	// a host, 2 cores, 2026-11-21; 1132-1138 MiB of a GPU, one H200, 2026-11-28): a shape that
	// needs no more than another may be measured above it by this.
	hostSpread   = 1.05
	deviceSpread = 1.02
	// Margins of a fit: at least these, or as much as any sibling between others exceeds a fit of
	// these. GPUs get more: TensorFlow's allocator doubles its regions, so that peaks rise in
	// steps, up to 1.22 times the fit of four corners (16 shapes, one H200, 2026-11-28).
	hostMargin   = 1.10
	deviceMargin = 1.22
	// manySiblings have outliers: from here on, one in fifty may exceed the margin.
	manySiblings = 50
)

// Sibling is a measured shape that differs from others of its family in numbers only.
type Sibling struct {
	At        []float64 // these numbers, by name
	Footprint berth.Footprint
}

// Family predicts what unmeasured shapes need from measured siblings on one class of device.
type Family struct {
	footprints   []berth.Footprint // of the siblings
	at           [][]float64       // their numbers
	low, wide    []float64         // of each number
	points       [][]float64       // the numbers that differ, each between 0 and 1
	host, device peaks
}

// NewFamily returns the family of these siblings, which have equally many numbers.
func NewFamily(siblings []Sibling) *Family {
	f := &Family{}
	if len(siblings) < leastSiblings {
		return f
	}

	for j := range siblings[0].At {
		low, high := math.Inf(1), math.Inf(-1)
		for _, s := range siblings {
			low, high = min(low, s.At[j]), max(high, s.At[j])
		}

		f.low, f.wide = append(f.low, low), append(f.wide, high-low)
	}

	host, device := make([]float64, len(siblings)), make([]float64, len(siblings))

	for i, s := range siblings {
		f.footprints, f.at, f.points = append(f.footprints, s.Footprint), append(f.at, s.At), append(f.points, f.scaled(s.At))
		host[i], device[i] = float64(s.Footprint.MemoryPeakBytes), float64(s.Footprint.DevicePeakBytes)
	}

	f.host, f.device = newPeaks(f.points, host, hostMargin, hostSpread), newPeaks(f.points, device, deviceMargin, deviceSpread)

	return f
}

// Predict returns the footprint of an unmeasured shape. ok is false unless it lies between
// measured ones: one that is as small in every number, and one that is as large. Elsewhere a
// fit may be far off.
func (f *Family) Predict(key string, at []float64) (footprint berth.Footprint, ok bool) {
	if f.points == nil || !between(f.at, at) {
		return footprint, false
	}

	x := f.scaled(at)
	host, ok := f.host.at(x)
	device, deviceOK := f.device.at(x)
	nearest := f.footprints[nearest(f.points, x)]

	return berth.Footprint{
		ShapeKey: key, Class: nearest.Class, Source: berth.FootprintPredicted, MemoryPeakBytes: int64(host), DevicePeakBytes: int64(device),
		CPUMilli: nearest.CPUMilli, Duration: nearest.Duration, DeviceActivity: nearest.DeviceActivity,
	}, ok && deviceOK
}

func (f *Family) scaled(at []float64) (out []float64) {
	for j, x := range at {
		if f.wide[j] > 0 {
			out = append(out, (x-f.low[j])/f.wide[j])
		}
	}

	return out
}

// nearest is the index of the point that is least far from x.
func nearest(points [][]float64, x []float64) (index int) {
	least := math.Inf(1)

	for i, p := range points {
		sum := 0.0
		for j := range p {
			sum += (p[j] - x[j]) * (p[j] - x[j])
		}

		if sum < least {
			index, least = i, sum
		}
	}

	return index
}

// peaks predict one kind of memory.
type peaks struct {
	points [][]float64
	values []float64
	rising bool // more of a number never needs less memory
	terms  terms
	fit    []float64 // coefficients of terms; nil = too few points
	margin float64   // of the fit
	spread float64   // of repeated runs
}

func newPeaks(points [][]float64, values []float64, margin, spread float64) peaks {
	p := peaks{points: points, values: values, spread: spread, rising: rises(points, values), terms: termsFor(len(points[0]), len(points))}
	if p.terms != nil {
		p.fit = leastSquares(p.terms, points, values)
		p.margin = max(margin, excess(p.terms, points, values))
	}

	return p
}

// at is the peak of a shape between the siblings: by the fit with its margin, not above any
// sibling that is as large in every number, nor below any that is as small.
func (p *peaks) at(x []float64) (peak float64, ok bool) {
	above, below := math.Inf(1), 0.0

	for i, point := range p.points {
		if p.rising && covers(point, x) {
			above = min(above, p.values[i]*p.spread)
		}

		if p.rising && covers(x, point) {
			below = max(below, p.values[i])
		}
	}

	peak = above
	if p.fit != nil {
		peak = min(above, value(p.terms, p.fit, x)*p.margin)
	}

	return max(peak, below), !math.IsInf(peak, 0) && !math.IsNaN(peak)
}

// rises reports whether no point that is as large as another in every number needs less.
func rises(points [][]float64, values []float64) bool {
	for i, p := range points {
		for k, other := range points {
			if covers(p, other) && values[i]*hostSpread < values[k] {
				return false
			}
		}
	}

	return true
}

// covers reports whether a is as large as b in every number.
func covers(a, b []float64) bool {
	for j := range a {
		if a[j] < b[j] {
			return false
		}
	}

	return true
}

// excess is by how much points between others exceed a fit of these, the margin of conformal
// prediction; 0 when there are no more points than coefficients. Corners do not count: nothing
// is predicted so far from all others.
func excess(t terms, points [][]float64, values []float64) float64 {
	if len(points) <= len(t(points[0])) {
		return 0
	}

	ratios := []float64{0}

	for i, p := range points {
		others, theirs := slices.Delete(slices.Clone(points), i, i+1), slices.Delete(slices.Clone(values), i, i+1)
		if expected := value(t, leastSquares(t, others, theirs), p); expected > 0 && between(others, p) {
			ratios = append(ratios, values[i]/expected)
		}
	}

	slices.Sort(ratios)

	allowed := 0
	if len(ratios) > manySiblings {
		allowed = len(ratios) / manySiblings
	}

	return ratios[len(ratios)-1-allowed]
}

// between reports whether one of the points is as large as x in every number, and one as small.
func between(points [][]float64, x []float64) bool {
	return slices.ContainsFunc(points, func(p []float64) bool { return covers(p, x) }) &&
		slices.ContainsFunc(points, func(p []float64) bool { return covers(x, p) })
}
