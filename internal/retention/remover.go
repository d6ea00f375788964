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
	// OldestOutputs are trials of ended sweeps whose files the host may have, the
	// sweep that ended first first.
	OldestOutputs(ctx context.Context, hostID string, limit int) ([]berth.TrialOutputs, error)
	// ExpireOutputs asks for the removal of the files of these trials, and records why.
	ExpireOutputs(ctx context.Context, hostID string, trialIDs []string, why string) error
}

// Files are the files of attempts on this host.
type Files interface {
	// RemoveOutputs removes all files of an attempt and its trial's checkpoints.
	// Those that are gone already are a success.
	RemoveOutputs(r berth.OutputRemoval) error
	// MeasureOutputs returns what the files of all attempts take on the disk.
	MeasureOutputs(ctx context.Context) (int64, error)
	// MeasureTrial is MeasureOutputs for the attempts of one trial.
	MeasureTrial(ctx context.Context, t berth.TrialOutputs) (int64, error)
}

const (
	// removalsAtOnce is how many attempts, or trials, one step removes.
	removalsAtOnce = 200
	// askTimeout bounds one question to the database.
	askTimeout = 10 * time.Second
	// measureEvery is how often files are measured.
	measureEvery = time.Minute
	// measureShare keeps the measuring of millions of files below 5 % of a core.
	measureShare = 20
)

// Remover removes files from its host: those that it is asked to remove, and the
// oldest ones of ended sweeps while all take more than a limit.
type Remover struct {
	Removals Removals
	Files    Files
	HostID   string
	Limit    int64         // most that the files of this host's attempts take, in bytes; 0 = without limit
	Every    time.Duration // between two looks; default 1 minute
	Log      *slog.Logger

	measureAt time.Time // when the files are measured next
	over      bool      // they take more than the limit, and nothing may be removed
}

// Run removes until ctx ends.
func (r *Remover) Run(ctx context.Context) error {
	return repeat(ctx, r.Every, func() {
		if err := r.Look(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("removing files of ended sweeps", "error", err)
		}
	})
}

// Look removes what is to be removed at this moment.
func (r *Remover) Look(ctx context.Context) error {
	if err := r.remove(ctx); err != nil {
		return err
	}

	return r.shrink(ctx)
}

// remove removes all that this host is asked to.
func (r *Remover) remove(ctx context.Context) error {
	for {
		if more, err := r.step(ctx); err != nil || !more {
			return err
		}
	}
}

// shrink measures the files now and then. While they take more than the limit it
// asks for the removal of the oldest, and removes them. Files that cannot be
// removed end it: others are not removed in their stead.
func (r *Remover) shrink(ctx context.Context) error {
	began := time.Now()
	if began.Before(r.measureAt) {
		return nil
	}

	total, err := r.Files.MeasureOutputs(ctx)
	r.measureAt = time.Now().Add(max(measureEvery, measureShare*time.Since(began)))

	for err == nil && r.Limit > 0 && total > r.Limit {
		var (
			freed int64
			found bool
		)

		if freed, found, err = r.expire(ctx, total-r.Limit); err != nil {
			return err
		}

		if !found {
			break
		}

		total -= freed
		err = r.remove(ctx)
	}

	r.sayOver(err == nil && r.Limit > 0 && total > r.Limit, total)

	return err
}

// sayOver logs once that the limit cannot be kept.
func (r *Remover) sayOver(over bool, total int64) {
	if over && !r.over {
		r.Log.Warn("files take more than --keep-outputs-size, and no sweep that has ended has any left",
			"files", berth.BytesText(total), "limit", berth.BytesText(r.Limit))
	}

	r.over = over
}

// expire asks for the removal of the oldest files, until so many bytes are
// freed. found is false when there are none.
func (r *Remover) expire(ctx context.Context, excess int64) (freed int64, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	oldest, err := r.Removals.OldestOutputs(ctx, r.HostID, removalsAtOnce)
	if err != nil || len(oldest) == 0 {
		return 0, false, err
	}

	var ids []string

	for _, trial := range oldest {
		if freed >= excess {
			break
		}

		size, err := r.Files.MeasureTrial(ctx, trial)
		if err != nil {
			return 0, false, err
		}

		freed += size
		ids = append(ids, trial.TrialID)
	}

	why := "its host keeps at most " + berth.BytesText(r.Limit) + " of files (--keep-outputs-size); the oldest of ended sweeps go first"

	return freed, true, r.Removals.ExpireOutputs(ctx, r.HostID, ids, why)
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
