package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// heldEvery is how often an attempt that measures its shape is looked at.
const heldEvery = 500 * time.Millisecond

// tellHeld tells the database what the attempt holds of its GPU, where its shape was not
// measured there: once it has reported a metric, or the shim steps of its training, as by
// then most programs hold what they will, and again when it holds more than its lease. Trials of the shape that wait
// need not wait for its end.
func (r *run) tellHeld(ctx context.Context, exited <-chan struct{}, o *output, w *deviceWatch) error {
	a := r.who.Attempt
	if !r.who.Measures || a.DeviceID == "" || a.Demand.SpillBytes > 0 {
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

		held := w.heldNow()
		if held <= told || !o.metrics.any() && !o.shim.trains() {
			continue
		}

		bytes, err := r.records.MeasureRunning(ctx, a.ID, r.order.Token, berth.Usage{DevicePeakBytes: held}, a.Demand.DeviceBytes)

		switch {
		case err == nil:
			told = bytes
		case berth.KindOf(err) == berth.KindFenced: // what follows the container finds out
			return nil
		case ctx.Err() == nil:
			r.log.Warn("telling what an attempt holds of its GPU; trying again", "attempt", a.ID, "error", err)
		}
	}
}

// heldNow is the most that the attempt held until now; 0 while the driver does not say it all.
func (w *deviceWatch) heldNow() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.starting != nil {
		return 0
	}

	return w.peak
}
