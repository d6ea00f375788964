package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
)

// heldEvery is how often an attempt that measures its shape is looked at.
const heldEvery = 500 * time.Millisecond

// heldFor is how long an attempt must hold the same of its GPU before that is told: in its
// first steps a program takes more with each.
const heldFor = 2 * time.Second

// tellHeld tells the database what the attempt holds of its GPU, where its shape was not
// measured there: once it has reported a metric, or the shim steps of its training, as by
// then most programs hold what they will, and again when it holds more than its lease.
// Trials of the shape that wait need not wait for its end. What the user wrote stands, and
// by time slices nothing would bound trials of such a size.
func (r *run) tellHeld(ctx context.Context, exited <-chan struct{}, o *output, w *sampling.DeviceWatch) error {
	a := r.who.Attempt
	if !r.who.Measures || a.Class.Mode() != berth.SharingMPS || a.Demand.SpillBytes > 0 || r.who.Spec.Resources.GPUMemory > 0 {
		return nil
	}

	ticker := time.NewTicker(heldEvery)
	defer ticker.Stop()

	for told := int64(0); ; {
		select {
		case <-ticker.C:
		case <-exited:
			return nil
		case <-ctx.Done():
			return nil
		}

		held := w.HeldFor(heldFor)
		if held <= told || !o.metrics.Any() && o.shim.report().steps == 0 {
			continue
		}

		bytes, err := r.records.MeasureRunning(ctx, a.ID, r.order.Token, berth.Usage{DevicePeakBytes: held}, a.Demand.DeviceBytes)

		switch {
		case err == nil:
			told = max(bytes, held) // where its GPU has no more room, there is nothing more to tell
		case berth.KindOf(err) == berth.KindFenced: // what follows the container finds out
			return nil
		case ctx.Err() == nil:
			r.log.Warn("telling what an attempt holds of its GPU; trying again", "attempt", a.ID, "error", err)
		}
	}
}
