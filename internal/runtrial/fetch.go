package runtrial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
)

// Where a checkpoint is while it is fetched, in the attempt's directory: below
// its id, then whole, and the older one that it takes the place of.
const (
	fetchingName = "fetching"
	fetchedName  = "fetched"
	replacedName = "replaced"
)

// RestoreCheckpoint writes a checkpoint from the store below root and tells how many
// bytes are there. Called again with the same root, it goes on. Errors: not_found when
// it is gone; berth.ErrDamaged; unavailable; of the disk.
type RestoreCheckpoint func(ctx context.Context, id string, root *os.Root, told func(bytes int64)) error

var (
	errNoStore      = errors.New("this host has no store of artifacts (--artifacts)")
	errFetchStalled = errors.New("the store sends nothing of it")
	errNoRoom       = errors.New("there is no room for it")
	errTooLarge     = errors.New("it is too large for this host")
	errDisk         = errors.New("the disk of this host does not take it")
)

// fetch puts a checkpoint from the store in the place of the directory of this host.
// Errors: exhausted when the disk has no room, or an attempt may not keep as much here; errDisk; errNoStore; errFetchStalled when
// it is time to give up and nothing moves; fenced; those of RestoreCheckpoint.
func (f *fetching) fetch(ctx context.Context, e berth.EarlierCheckpoint) error {
	r := f.run

	if r.config.Restore == nil {
		return errNoStore
	}

	part := filepath.Join(r.dirs.attempt, fetchingName, e.Stored.ID)

	if err := r.dirs.dropParts(part); err != nil {
		return berth.Errorf(berth.KindUnavailable, "%w", ofDisk(err))
	}

	if err := r.roomFor(e.Stored.Bytes, fetchedBytes(part)); err != nil {
		return err
	}

	if err := os.MkdirAll(part, 0o700); err != nil {
		return berth.Errorf(berth.KindUnavailable, "making directory: %w", ofDisk(err))
	}

	root, err := os.OpenRoot(part)
	if err != nil {
		return berth.Errorf(berth.KindUnavailable, "opening directory: %w", ofDisk(err))
	}
	defer root.Close() //nolint:errcheck // all files are closed

	total := (e.Stored.Bytes + 1<<20 - 1) >> 20

	bound, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	patience := func() time.Duration { return max(time.Until(f.giveUp), fetchStall) }

	timer := time.AfterFunc(patience(), func() { cancel(errFetchStalled) })
	defer timer.Stop()

	there, guard := int64(0), fetchGuard{run: r, part: part}

	err = r.config.Restore(bound, e.Stored.ID, root, func(bytes int64) {
		if bytes > there { // nothing is given up while bytes arrive
			there = bytes
			timer.Reset(patience())
		}

		if err := guard.look(bound); err != nil {
			cancel(err)
		}

		f.note.say(ctx, fmt.Sprintf("fetching its checkpoint: %d of %d MiB", bytes>>20, total))
	})

	if err == nil {
		err = guard.kept(ctx)
	}

	switch cause := context.Cause(bound); {
	case err != nil && ctx.Err() == nil && errors.Is(cause, errFetchStalled):
		return errFetchStalled
	case err != nil && ctx.Err() == nil && berth.KindOf(cmp.Or(cause, err)) == berth.KindExhausted: // its room is that of others
		return errors.Join(cmp.Or(cause, err), r.dirs.dropParts(""))
	case err != nil:
		return ofDisk(err)
	}

	if err := f.stillOurs(ctx); err != nil {
		return err
	}

	if err := os.Rename(part, filepath.Join(r.dirs.attempt, fetchedName)); err != nil {
		return berth.Errorf(berth.KindUnavailable, "naming a whole checkpoint: %w", ofDisk(err))
	}

	if err := r.settleSwap(); err != nil {
		return err
	}

	if err := r.dirs.keepMark(keptMark{Checkpoint: e.Stored.ID}); err != nil {
		return berth.Errorf(berth.KindUnavailable, "noting which checkpoint was fetched: %w", ofDisk(err))
	}

	return nil
}

// stillOurs asks whether the attempt may replace the directory of its trial: one that was given
// up while it fetched may not, for the container of another one may have it mounted.
// It asks until the database answers. Errors: fenced; unavailable when ctx ends.
func (f *fetching) stillOurs(ctx context.Context) error {
	r := f.run
	f.note.text, f.note.at = "puts its checkpoint in its place", time.Now()

	if err := patiently(ctx, func() error {
		return r.records.NoteWait(ctx, r.who.Attempt.ID, r.order.Token, f.note.text)
	}); err != nil {
		return err
	}

	for _, other := range r.RunningCheckpoints() { // its placing may be newer than the answer
		if other.TrialID == r.who.Trial.ID && other.Token > r.order.Token {
			return berth.Errorf(berth.KindFenced, "attempt %s is not ours any more: attempt %s of its trial runs here", r.who.Attempt.ID, other.AttemptID)
		}
	}

	return nil
}

// dropParts removes what is there of other checkpoints: the one that is fetched now
// goes on where it was.
func (d dirs) dropParts(but string) error {
	dir := filepath.Join(d.attempt, fetchingName)

	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing parts of checkpoints: %w", err)
	}

	for _, entry := range entries {
		if path := filepath.Join(dir, entry.Name()); path != but {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("removing part of a checkpoint: %w", err)
			}
		}
	}

	return nil
}

// settleSwap puts a checkpoint that is whole in the place of the older one. What cannot
// be removed of that one goes with the attempt's files. Errors: unavailable.
func (r *run) settleSwap() error {
	_, err := os.Lstat(filepath.Join(r.dirs.attempt, fetchedName))

	fetched := err == nil
	if fetched { // it comes to this data directory
		r.dirs.checkpoint = r.usualCheckpoint(r.who.Trial.ID)
	}

	left, err := r.dirs.settleSwap()
	if fetched && err == nil {
		r.noteElsewhere()
	}

	if left != nil {
		r.log.Warn("removing a checkpoint that was replaced; it stays until the attempt's files are removed, if the worker may", "attempt", r.who.Attempt.ID, "error", left)
	}

	if err != nil {
		return berth.Errorf(berth.KindUnavailable, "putting a checkpoint in its place: %w", ofDisk(err))
	}

	return nil
}

// settleSwap goes on wherever it was cut off: without the old one, the new one is not in
// its place yet. left says why the old one is still there: a worker without root cannot
// empty a directory that a job made.
func (d dirs) settleSwap() (left, err error) {
	fetched, replaced := filepath.Join(d.attempt, fetchedName), filepath.Join(d.attempt, replacedName)

	if _, err := os.Lstat(fetched); err == nil {
		old := replaced
		if os.RemoveAll(replaced) != nil { // one of an earlier swap is still there
			dir, err := os.MkdirTemp(replaced, "later-")
			if err != nil {
				return nil, err
			}

			old = filepath.Join(dir, "checkpoint")
		}

		if err := os.Rename(d.checkpoint, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}

		if err := os.MkdirAll(filepath.Dir(d.checkpoint), 0o700); err != nil {
			return nil, err
		}

		if err := os.Rename(fetched, d.checkpoint); err != nil {
			return nil, err
		}
	}

	return os.RemoveAll(replaced), nil
}

// OpenCheckpoint opens the checkpoint directory that the newest container of a trial here
// has. No link leads out of it. Errors: not_found.
func (e *Executor) OpenCheckpoint(trialID string) (*os.Root, error) {
	root, err := os.OpenRoot(e.dirs(berth.Assignee{Trial: berth.Trial{ID: trialID}}).checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, berth.Errorf(berth.KindNotFound, "opening the checkpoint of trial %s: %w", trialID, err)
	}

	return root, err
}

// RunningCheckpoints are the attempts whose containers run here and may write one.
func (e *Executor) RunningCheckpoints() (list []berth.AttemptCheckpoint) {
	e.writing.Range(func(_, of any) bool {
		list = append(list, of.(berth.AttemptCheckpoint)) //nolint:forcetypeassert // attempt alone stores
		return true
	})

	return list
}
