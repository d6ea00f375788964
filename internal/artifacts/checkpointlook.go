package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
)

// Run stores until ctx ends.
func (c *Checkpointer) Run(ctx context.Context) error {
	return keepLooking(ctx, c.Every, longestCheckpointPause, c.Look, func(err error, again time.Duration) {
		c.Log.Warn("storing checkpoints", "error", err, "again_in", again)
	})
}

// Look stores all due checkpoints. Errors: of the store or the database, which
// may come back.
func (c *Checkpointer) Look(ctx context.Context) error {
	if err := c.Ledger.SetHostCheckpoints(ctx, c.HostID, true); err != nil {
		return err
	}

	ended, err := c.Ledger.CheckpointsToStore(ctx, c.HostID, checkpointsAtOnce)
	if err != nil {
		return err
	}

	running := c.dueAttempts(ended)
	if len(ended)+len(running) == 0 {
		return nil
	}

	if err := c.Store.Ready(ctx); err != nil {
		for _, k := range c.known { // a checkpoint without a look in this time may have been quiet
			k.noisy, k.looks = time.Time{}, 0
		}

		return err
	}

	c.sent.store, c.sent.atOnce = c.Store, 1

	// Another host may wait for checkpoints of ended attempts: they come before running ones, or beside
	// them.
	tried := make(map[string]time.Time)
	all := c.storeAllEnded(ctx, ended, tried)

	for _, of := range running {
		if all != nil && (ctx.Err() != nil || c.Store.Ready(ctx) != nil) {
			break
		}

		late, err := c.endedSince(ctx, "")
		all = errors.Join(all, err, c.storeAllEnded(ctx, late, tried), c.storeBesideEnded(ctx, of, tried))
	}

	return all
}

// storeAllEnded stores the checkpoints of ended attempts, each at most once in longestCheckpointPause:
// a look may take hours.
func (c *Checkpointer) storeAllEnded(ctx context.Context, list []berth.AttemptCheckpoint, tried map[string]time.Time) error {
	return c.forEach(ctx, list, func(ctx context.Context, of berth.AttemptCheckpoint) error {
		if triedLately(of, tried) {
			return nil
		}

		tried[of.AttemptID] = time.Now()

		return c.storeEnded(ctx, of)
	})
}

// triedLately reports whether the attempt's checkpoint was tried recently and is not due yet.
func triedLately(of berth.AttemptCheckpoint, tried map[string]time.Time) bool {
	at, found := tried[of.AttemptID]

	return found && time.Since(at) < longestCheckpointPause
}

// endedSince returns attempts that have ended since the look began, except attempts of the
// trial whose checkpoint is sent now.
func (c *Checkpointer) endedSince(ctx context.Context, but string) ([]berth.AttemptCheckpoint, error) {
	list, err := c.Ledger.CheckpointsToStore(ctx, c.HostID, checkpointsAtOnce)

	return slices.DeleteFunc(list, func(of berth.AttemptCheckpoint) bool { return of.TrialID == but }), err
}

// storeBesideEnded stores the checkpoint of a running attempt, which may take hours, and shares the uplink
// with checkpoints of attempts that end in that time. It does not share a slow uplink: there it
// stops, and begins again after the ended attempts.
func (c *Checkpointer) storeBesideEnded(ctx context.Context, of berth.AttemptCheckpoint, tried map[string]time.Time) error {
	var group errgroup.Group

	own, yield := context.WithCancel(ctx)
	defer yield()

	sent := make(chan struct{})

	group.Go(func() error {
		defer close(sent)

		return c.forEach(own, []berth.AttemptCheckpoint{of}, c.storeRunning)
	})

	every := cmp.Or(c.Every, defaultEvery)

	for pause := every; ; {
		select {
		case <-sent:
			return group.Wait()
		case <-time.After(pause):
		}

		pause = every

		list, err := c.endedSince(ctx, of.TrialID)
		list = slices.DeleteFunc(list, func(of berth.AttemptCheckpoint) bool { return triedLately(of, tried) })

		if len(list) > 0 && c.sent.slow() {
			yield()
			_ = group.Wait() // it was ended

			return c.storeAllEnded(ctx, list, tried)
		}

		if err = errors.Join(err, c.storeAllEnded(ctx, list, tried)); err != nil && ctx.Err() == nil {
			pause = longestCheckpointPause
			c.Log.Warn("storing checkpoints beside that of a running attempt", "error", err, "again_in", pause)
		}
	}
}

// forEach calls do for each attempt. A problem with one attempt does not delay the
// others while the store answers.
func (c *Checkpointer) forEach(ctx context.Context, list []berth.AttemptCheckpoint, do func(context.Context, berth.AttemptCheckpoint) error) (all error) {
	for _, of := range list {
		err := do(ctx, of)
		if err == nil {
			continue
		}

		all = errors.Join(all, fmt.Errorf("checkpoint of attempt %s: %w", of.AttemptID, err))

		if ctx.Err() != nil || c.Store.Ready(ctx) != nil {
			break
		}
	}

	return all
}
