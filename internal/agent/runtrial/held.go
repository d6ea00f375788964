package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
)

// heldFor is how long an attempt must hold the same of its GPU before that is told: in its
// first steps a program takes more with each.
const heldFor = 2 * time.Second

// tellHeld tells the database, unless it knows as much, what the attempt holds of its GPU, where its shape was not
// measured there: once it has reported a metric, or the shim steps of its training, as by
// then most programs hold what they will, and again when it holds more than its lease.
// Trials of the shape that wait need not wait for its end. What the user wrote stands, and
// by time slices nothing would bound trials of such a size.
func (r *run) tellHeld(ctx context.Context, told int64, o *output, w *sampling.DeviceWatch) int64 {
	a := r.who.Attempt
	if !r.who.Measures || a.Class.Mode() != berth.SharingMPS || a.Demand.SpillBytes > 0 || r.who.Spec.Resources.GPUMemory > 0 {
		return told
	}

	held := w.HeldFor(heldFor)
	if held <= told || !o.metrics.Any() && o.shim.report().steps == 0 {
		return told
	}

	bytes, err := r.records.MeasureRunning(ctx, a.ID, r.order.Token, berth.Usage{DevicePeakBytes: held}, a.Demand.DeviceBytes)
	if err != nil {
		if ctx.Err() == nil {
			r.log.Warn("telling what an attempt holds of its GPU; trying again", "attempt", a.ID, "error", err)
		}

		return told
	}

	return max(bytes, held) // where its GPU has no more room, there is nothing more to tell
}
