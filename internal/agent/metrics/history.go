package metrics

import (
	"time"

	"github.com/berthml/berth"
)

// history is what is kept of one metric. Its figures are finite.
type history struct {
	figures

	last    float64
	status  berth.MetricStatus // of the last one; empty = there was none
	at      time.Time
	step    int64
	final   *berth.MetricPoint
	earlier figures // of all without the last step
}

// figures are those of a metric's finite values.
type figures struct {
	min, max, sum float64
	finite        int // how many there were
}

func (h *history) add(p berth.MetricPoint) {
	if p.Final {
		h.final = &p

		return
	}

	if h.status != "" && p.Step == h.step { // it replaces the earlier one
		h.figures = h.earlier
	}

	h.earlier = h.figures
	h.last, h.status, h.at, h.step = p.Value, p.Status, p.At, p.Step

	if p.Status != berth.MetricFinite {
		return
	}

	if h.finite == 0 {
		h.min, h.max = p.Value, p.Value
	}

	h.min, h.max = min(h.min, p.Value), max(h.max, p.Value)
	h.sum += p.Value
	h.finite++
}
