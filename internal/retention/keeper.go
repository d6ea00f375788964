// Package retention deletes what is over its limit: rows, by a server, and the
// files of attempts, by the host that has them.
package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthml/berth"
)

// Ledger is what a Keeper needs of the database.
type Ledger interface {
	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
	// Retain deletes a bounded number of rows that are over their limit and says
	// whether there may be more.
	Retain(ctx context.Context, keep berth.Retention) (more bool, err error)
}

const (
	// defaultEvery is how often limits are looked at; a deleted sweep's rows and
	// files go within this time.
	defaultEvery = time.Minute
	// breath is the pause between two steps of one look, so that deleting many
	// rows leaves the database to those that wait for it.
	breath = 50 * time.Millisecond
	// lookTimeout bounds one look; the next one goes on.
	lookTimeout = time.Minute
)

// Keeper deletes rows that are over their limit. One server leads at a time.
type Keeper struct {
	Ledger Ledger
	Keep   berth.Retention
	Every  time.Duration // between two looks; default 1 minute
	Log    *slog.Logger
}

// Run looks while it leads, until ctx ends. A look that fails is logged and repeated.
func (k *Keeper) Run(ctx context.Context) error {
	return k.Ledger.Lead(ctx, "retention", func(ctx context.Context) error {
		return repeat(ctx, k.Every, func() {
			if err := k.look(ctx); err != nil && ctx.Err() == nil {
				k.Log.Warn("deleting what is over its limit", "error", err)
			}
		})
	})
}

// look deletes until nothing is over its limit.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	for {
		more, err := k.Ledger.Retain(ctx, k.Keep)
		if err != nil || !more {
			return err
		}

		select {
		case <-time.After(breath):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// repeat calls do now and then every so often, until ctx ends.
func repeat(ctx context.Context, every time.Duration, do func()) error {
	if every == 0 {
		every = defaultEvery
	}

	ticker := time.NewTicker(every)
	defer ticker.Stop()

	for {
		do()

		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
