package timeline

import (
	"slices"

	"github.com/berthml/berth"
)

// Thinner keeps at most a given number of points of a curve, so that a chart of
// it looks the same: in each of equally wide ranges of steps the first, the
// last, the lowest and the highest point. This is M4 (Jugel, Jerzak,
// Hackenbroich, Markl: "M4: A Visualization-Oriented Time Series Data
// Aggregation", VLDB 2014), which draws a line chart without an error when a
// range is as wide as a pixel. It needs memory for the kept points only. A
// curve with fewer points stays whole.
type Thinner struct {
	low, high int64 // first and last step, as far as is known
	most      int
	all       []berth.CurvePoint // nil once there were more than most
	ranges    []curveRange
	total     int
}

// LeastPoints is what a Thinner keeps at least: one range.
const LeastPoints = 4

type curveRange struct {
	first, last, lowest, highest berth.CurvePoint
	filled                       bool
}

// NewThinner begins a curve of steps from low to high, both as known before; steps
// beyond them belong to the ranges at the ends. most is at least LeastPoints.
func NewThinner(low, high int64, most int) *Thinner {
	return &Thinner{low: low, high: high, most: most, all: []berth.CurvePoint{}}
}

// Add takes the next point; their steps ascend.
func (t *Thinner) Add(p berth.CurvePoint) {
	t.total++

	switch {
	case t.all == nil:
		t.keep(p)
	case len(t.all) < t.most:
		t.all = append(t.all, p)
	default:
		t.ranges = make([]curveRange, t.most/LeastPoints)
		for _, earlier := range append(t.all, p) {
			t.keep(earlier)
		}

		t.all = nil
	}
}

func (t *Thinner) keep(p berth.CurvePoint) {
	part := (float64(p.Step) - float64(t.low)) / (float64(t.high) - float64(t.low) + 1) // a difference of steps may not fit
	r := &t.ranges[min(max(int(part*float64(len(t.ranges))), 0), len(t.ranges)-1)]

	if !r.filled {
		*r = curveRange{p, p, p, p, true}

		return
	}

	r.last = p

	if p.Value < r.lowest.Value {
		r.lowest = p
	}

	if p.Value > r.highest.Value {
		r.highest = p
	}
}

// Total is how many points there were.
func (t *Thinner) Total() int { return t.total }

// Points returns the kept points, by step; never nil.
func (t *Thinner) Points() []berth.CurvePoint {
	if t.all != nil {
		return t.all
	}

	points := make([]berth.CurvePoint, 0, len(t.ranges)*LeastPoints)

	for _, r := range t.ranges {
		if !r.filled {
			continue
		}

		inner := []berth.CurvePoint{r.lowest, r.highest}
		if r.lowest.Step > r.highest.Step {
			slices.Reverse(inner)
		}

		points = append(append(append(points, r.first), inner...), r.last)
	}

	return slices.CompactFunc(points, func(a, b berth.CurvePoint) bool { return a.Step == b.Step })
}
