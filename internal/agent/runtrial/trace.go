package runtrial

import (
	"context"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
)

// memoryEvery is how often the worker stores what an attempt held over time: one
// statement for each attempt.
const memoryEvery = 10 * time.Second

// traceName is the file that keeps what an attempt held over time, as far as the
// database lacks it: 50 KB at most.
const traceName = "trace.json"

// keepTrace writes a trace down. Like usage it is not synced: a power cut ends the
// container as well.
func (d dirs) keepTrace(k sampling.KeptTrace) error {
	return writeJSON(filepath.Join(d.attempt, traceName), "what the attempt held over time", k)
}

// trace is what was written down of a container; zero when nothing was. An empty id
// stands for whatever container the attempt had.
func (d dirs) trace(container string) sampling.KeptTrace {
	var kept sampling.KeptTrace
	if !readJSON(filepath.Join(d.attempt, traceName), &kept) || container != "" && kept.Container != container {
		return sampling.KeptTrace{}
	}

	return kept
}

// unstored is what the database lacks of what the attempt held over time, by this Run and
// those before.
func (r *run) unstored() []berth.MemoryPoint {
	if r.trace == nil { // this Run has watched no container
		return r.dirs.trace(r.container.ID).Points
	}

	return r.trace.Rest()
}

// keepMemory stores what the attempt held over time, now and then, until its container has
// exited; what is left then is part of the verdict. While the database is away, what waits
// is also on disk for the Run that adopts the container: a worker that is killed loses
// keepUsageEvery of it at most. Errors: fenced.
func (r *run) keepMemory(ctx context.Context, exited <-chan struct{}) error {
	store, keep := time.NewTicker(memoryEvery), time.NewTicker(keepUsageEvery)
	defer store.Stop()
	defer keep.Stop()

	for {
		select {
		case <-store.C:
			if err := r.putMemory(ctx); err != nil {
				return err
			}
		case <-keep.C:
			r.keepTrace()
		case <-exited:
			return nil
		case <-ctx.Done():
			r.keepTrace() // at once, whatever still waits for Docker

			return nil
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

// keepTrace writes down what the database lacks of what the attempt held over time.
func (r *run) keepTrace() {
	kept, changed := r.trace.Kept(r.container.ID)
	if !changed {
		return
	}

	if err := r.dirs.keepTrace(kept); err != nil {
		r.log.Warn("writing down what the attempt held over time", "attempt", r.who.Attempt.ID, "error", err)
	}
}
