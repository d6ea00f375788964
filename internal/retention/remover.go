package retention

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/berthml/berth"
)

// Removals are the files that a host is asked to remove. A host removes what it
// was asked to and nothing else: what the database does not know may belong to a
// sweep that a restored database has forgotten.
type Removals interface {
	OutputRemovals(ctx context.Context, hostID string, limit int) ([]berth.OutputRemoval, error)
	OutputsRemoved(ctx context.Context, hostID string, removed, failed []string) error
}

// Files are the files of attempts on this host.
type Files interface {
	// RemoveOutputs removes all files of an attempt and its trial's checkpoints.
	// Those that are gone already are a success.
	RemoveOutputs(r berth.OutputRemoval) error
}

const (
	// removalsAtOnce is how many attempts one step removes.
	removalsAtOnce = 200
	// askTimeout bounds one question to the database.
	askTimeout = 10 * time.Second
)

// Remover removes files from its host.
type Remover struct {
	Removals Removals
	Files    Files
	HostID   string
	Every    time.Duration // between two looks; default 1 minute
	Log      *slog.Logger
}

// Run removes until ctx ends.
func (r *Remover) Run(ctx context.Context) error {
	return repeat(ctx, r.Every, func() {
		for {
			more, err := r.step(ctx)
			if err != nil && ctx.Err() == nil {
				r.Log.Warn("removing files of deleted sweeps", "error", err)
			}

			if err != nil || !more {
				return
			}
		}
	})
}

// step removes the files of some attempts and says whether there may be more.
func (r *Remover) step(ctx context.Context) (more bool, err error) {
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	list, err := r.Removals.OutputRemovals(asked, r.HostID, removalsAtOnce)
	if err != nil || len(list) == 0 {
		return false, err
	}

	var (
		done, failed []string
		all          error
	)

	for _, removal := range list {
		if err := r.Files.RemoveOutputs(removal); err != nil {
			all = errors.Join(all, err)
			failed = append(failed, removal.AttemptID)

			continue
		}

		done = append(done, removal.AttemptID)
	}

	told, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()

	all = errors.Join(all, r.Removals.OutputsRemoved(told, r.HostID, done, failed))

	return len(list) == removalsAtOnce, all
}
