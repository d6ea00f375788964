// Package retention deletes what is over its limit: rows, by a server, and the
// files of attempts, by the host that has them.
package retention

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// Ledger is what a Keeper needs of the database.
type Ledger interface {
	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
	// Retain deletes a bounded number of rows that are over their limit and says
	// whether there may be more. It notes what fails, by its name, and leaves out
	// what is noted.
	Retain(ctx context.Context, keep berth.Retention, failed map[string]error) (more bool)
	// NoteRetention stores what cannot be deleted, for health; empty = nothing.
	NoteRetention(ctx context.Context, problem string) error
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
	// failuresNamed is how many failures are told in words.
	failuresNamed = 3
)

// Keeper deletes rows that are over their limit. One server leads at a time.
type Keeper struct {
	Ledger Ledger
	Keep   berth.Retention
	Every  time.Duration // between two looks; default 1 minute
	Log    *slog.Logger
}

// Run looks while it leads, until ctx ends. What fails is logged, told by health
// and tried again.
func (k *Keeper) Run(ctx context.Context) error {
	return k.Ledger.Lead(ctx, "retention", func(ctx context.Context) error {
		return repeat(ctx, k.Every, func() {
			problem := k.look(ctx)
			if ctx.Err() != nil {
				return
			}

			if problem != "" {
				k.Log.Warn("deleting what is over its limit", "error", problem)
			}

			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()

			if err := k.Ledger.NoteRetention(ctx, problem); err != nil {
				k.Log.Warn("noting what cannot be deleted", "error", err)
			}
		})
	})
}

// look deletes until nothing is over its limit, and returns what fails.
func (k *Keeper) look(ctx context.Context) (problem string) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	failed := make(map[string]error)

	for k.Ledger.Retain(ctx, k.Keep, failed) && ctx.Err() == nil {
		select {
		case <-time.After(breath):
		case <-ctx.Done():
		}
	}

	names := slices.Sorted(maps.Keys(failed))
	texts := make([]string, 0, failuresNamed+1)

	for _, what := range names[:min(len(names), failuresNamed)] {
		texts = append(texts, failed[what].Error())
	}

	if more := len(names) - failuresNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}

	return strings.Join(texts, "; ")
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
