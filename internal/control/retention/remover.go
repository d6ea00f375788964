package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
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
	// sweep that ended first first, and files that wait for the store last.
	OldestOutputs(ctx context.Context, hostID string, limit int) ([]berth.TrialOutputs, error)
	// ExpireOutputs asks for the removal of the files of these trials, and records why.
	ExpireOutputs(ctx context.Context, hostID string, trialIDs []string, why string) error
}

// Files are the files of attempts on this host.
type Files interface {
	// RemoveOutputs removes all files of an attempt and its trial's checkpoints.
	// Those that are gone already are a success.
	// Errors: conflict while the attempt runs.
	RemoveOutputs(r berth.OutputRemoval) error
	// RemoveCopies removes the copies of outputs of stages that no unfinished trial needs.
	RemoveCopies(ctx context.Context) error
	// MeasureOutputs returns what files take on the disk, in bytes, by the id of
	// their attempt, and by the id of their trial for checkpoints.
	MeasureOutputs(ctx context.Context) (map[string]int64, error)
}

const (
	// removalsAtOnce is how many attempts, or trials, one step removes.
	removalsAtOnce = 200
	// mostTrials is how many trials are looked at: what a host keeps for years.
	mostTrials = 100_000
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
	unkept    error     // why the limit cannot be kept, or the last try to keep it failed
	problem   atomic.Pointer[string]

	// Of one look.
	failed  map[string]berth.OutputRemoval // by attempt
	refused error                          // of the first of them that does not run
	sizes   map[string]int64               // of files that were measured, but for those that are removed since
}

// Run removes until ctx ends.
func (r *Remover) Run(ctx context.Context) error {
	return repeat(ctx, r.Every, func() {
		before := r.Problem()

		if err := r.Look(ctx); err != nil && r.Problem() != before {
			r.Log.Warn("removing files of ended sweeps", "error", err)
		}
	})
}

// Problem says what a person must do something about, in plain words: files that
// cannot be removed, a limit that cannot be kept, and why a look failed. It is
// empty when all is well, and may be called at any time.
func (r *Remover) Problem() string {
	if text := r.problem.Load(); text != nil {
		return *text
	}

	return ""
}

// Look removes what is to be removed at this moment. Its error is the Problem.
func (r *Remover) Look(ctx context.Context) error {
	r.failed, r.refused, r.sizes = make(map[string]berth.OutputRemoval), nil, nil

	err := failing(errors.Join(r.remove(ctx), r.Files.RemoveCopies(ctx)))
	if err == nil && !time.Now().Before(r.measureAt) {
		r.unkept = r.shrink(ctx)
	}

	if r.refused != nil {
		r.refused = fmt.Errorf("files of %d attempts cannot be removed, such as: %w", len(r.failed), r.refused)
	}

	if err = errors.Join(r.unkept, err, r.refused); ctx.Err() == nil {
		text := ""
		if err != nil {
			text = strings.ReplaceAll(err.Error(), "\n", "; ")
		}

		r.problem.Store(&text)
	}

	return err
}

func failing(err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("removing files fails: %w", err)
}

// remove removes all that this host is asked to, and tries each once in a look.
func (r *Remover) remove(ctx context.Context) error {
	for {
		if more, err := r.step(ctx); err != nil || !more {
			return err
		}
	}
}

// shrink measures the files. While they take more than the limit it removes the
// oldest. Files that cannot be removed count as gone: others are not removed in their
// stead. Its error is also that the limit cannot be kept.
func (r *Remover) shrink(ctx context.Context) error {
	began := time.Now()
	sizes, err := r.Files.MeasureOutputs(ctx)
	r.sizes, r.measureAt = sizes, time.Now().Add(max(measureEvery, measureShare*time.Since(began)))

	if err != nil || r.Limit <= 0 {
		return failing(err)
	}

	for _, removal := range r.failed {
		r.forget(removal)
	}

	total := int64(0)
	for _, size := range r.sizes {
		total += size
	}

	if total <= r.Limit {
		return nil
	}

	trials, err := r.oldest(ctx)
	if err != nil {
		return failing(err)
	}

	ids, freeable := r.choose(trials, total-r.Limit)
	if total-freeable > r.Limit {
		return fmt.Errorf("files of attempts take %s and --keep-outputs-size is %s, but sweeps that have not ended, and files "+
			"that the database does not know, hold %s; ended sweeps hold %s and keep it, as their removal would not keep the limit",
			berth.BytesText(total), berth.BytesText(r.Limit), berth.BytesText(total-freeable), berth.BytesText(freeable))
	}

	for batch := range slices.Chunk(ids, removalsAtOnce) {
		if err := r.expire(ctx, batch); err != nil {
			return failing(err)
		}
	}

	return nil
}

// forget counts the files of an attempt as gone.
func (r *Remover) forget(removal berth.OutputRemoval) {
	delete(r.sizes, removal.AttemptID)
	delete(r.sizes, removal.TrialID)
}

// choose returns the trials whose files go, in their order and no more than needed to
// free so many bytes; those of a sweep that ended just now stay. freeable is what all of
// them could free: when that is too little, nothing goes, as to remove all results of
// ended sweeps would not keep the limit.
func (r *Remover) choose(trials []berth.TrialOutputs, excess int64) (ids []string, freeable int64) {
	for _, trial := range trials {
		bytes := r.sizes[trial.TrialID]
		for _, id := range trial.AttemptIDs {
			bytes += r.sizes[id]
		}

		freeable += bytes

		if excess > 0 && trial.EndedFor >= berth.FetchTime {
			ids, excess = append(ids, trial.TrialID), excess-bytes
		}
	}

	return ids, freeable
}

func (r *Remover) oldest(ctx context.Context) ([]berth.TrialOutputs, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	return r.Removals.OldestOutputs(ctx, r.HostID, mostTrials)
}

// expire asks for the removal of the files of these trials, and removes them.
func (r *Remover) expire(ctx context.Context, trialIDs []string) error {
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	why := "its host keeps at most " + berth.BytesText(r.Limit) + " of files (--keep-outputs-size); the oldest of ended sweeps go first"
	if err := r.Removals.ExpireOutputs(asked, r.HostID, trialIDs, why); err != nil {
		return err
	}

	return r.remove(ctx)
}

// step removes the files of some attempts and says whether there may be more.
// Those that failed before in this look come last and are left out.
func (r *Remover) step(ctx context.Context) (more bool, err error) {
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	list, err := r.Removals.OutputRemovals(asked, r.HostID, removalsAtOnce)
	if err != nil {
		return false, err
	}

	var done, failed []string

	for _, removal := range list {
		if _, tried := r.failed[removal.AttemptID]; tried {
			continue
		}

		if err := r.Files.RemoveOutputs(removal); err != nil {
			r.failed[removal.AttemptID] = removal
			failed = append(failed, removal.AttemptID)

			if r.refused == nil && berth.KindOf(err) != berth.KindConflict {
				r.refused = err
			}

			continue
		}

		done = append(done, removal.AttemptID)
		r.forget(removal)
	}

	if len(done)+len(failed) == 0 {
		return false, nil
	}

	told, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()

	return len(list) == removalsAtOnce, r.Removals.OutputsRemoved(told, r.HostID, done, failed)
}
