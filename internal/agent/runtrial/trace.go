package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// memoryEvery is how often the worker stores what an attempt held over time: one
// statement for each attempt.
const memoryEvery = 10 * time.Second

// lastMemoryFor is how long a worker that leaves an attempt may take to store the rest.
const lastMemoryFor = time.Second

// keepMemory stores what the attempt held over time, now and then, until its container has
// exited; what is left then is part of the verdict. A worker that stops while the database is
// away loses what waits. Errors: fenced.
func (r *run) keepMemory(ctx context.Context, exited <-chan struct{}) error {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
			if err := r.putMemory(ctx); err != nil {
				return err
			}
		case <-exited:
			return nil
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMemoryFor)
			defer cancel()

			return r.putMemory(ctx)
		}
	}
}

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
