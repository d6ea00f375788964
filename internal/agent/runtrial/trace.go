package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// lastMemoryFor is how long a worker that leaves an attempt may take to store the rest of
// what the attempt held over time. A worker that stops while the database is away loses that.
const lastMemoryFor = time.Second

// putMemory stores what the database lacks. What it can never store is dropped; the rest
// waits for the next time. Errors: fenced.
func (r *run) putMemory(ctx context.Context) error {
	points := r.trace.Storable()
	if len(points) == 0 {
		return nil
	}

	err := r.storable(r.records.PutMemory(ctx, r.who.Attempt.ID, r.order.Token, points))

	switch {
	case err == nil:
		r.trace.Stored(points)
	case berth.KindOf(err) == berth.KindFenced:
		return err
	case ctx.Err() == nil:
		r.log.Warn("storing what the attempt held over time; trying again", "attempt", r.who.Attempt.ID, "error", err)
	}

	return nil
}
