package runtrial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
)

// fetchingName is where a checkpoint is while it is fetched, in the attempt's directory,
// and then the one that it replaced, until that is removed.
const fetchingName = "fetching"

// RestoreCheckpoint unpacks a checkpoint from the store below root, and checks it: after an
// error nothing there counts. It tells how many bytes have arrived. Errors: not_found when it
// is gone; berth.ErrDamaged; unavailable; of the disk, which have no kind.
type RestoreCheckpoint func(ctx context.Context, of berth.StoredCheckpoint, root *os.Root, told func(bytes int64)) error

var errNoStore = errors.New("this host has no store of artifacts (--artifacts)")

// fetch puts a checkpoint from the store in the place of the directory of this host.
// Errors: exhausted when the disk has no room, or an attempt may not keep as much here;
// errNoStore; fenced; those of RestoreCheckpoint.
func (f *fetching) fetch(ctx context.Context, e berth.EarlierCheckpoint) error {
	r := f.run
	if r.config.Restore == nil {
		return errNoStore
	}

	if err := r.takes(e.Stored.Bytes); err != nil {
		return err
	}

	parts := filepath.Join(r.dirs.attempt, fetchingName)
	defer func() {
		if err := os.RemoveAll(parts); err != nil { // a worker without root cannot empty a directory that a job made
			r.log.Warn("removing a checkpoint that was replaced; it stays until the attempt's files are removed", "attempt", r.who.Attempt.ID, "error", err)
		}
	}()

	if err := os.MkdirAll(parts, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	dir, err := os.MkdirTemp(parts, "")
	if err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	whole := filepath.Join(dir, "checkpoint")
	if err := f.restore(ctx, *e.Stored, whole); err != nil {
		return err
	}

	if err := f.stillOurs(ctx); err != nil {
		return err
	}

	return r.dirs.replaceCheckpoint(whole, filepath.Join(dir, "replaced"))
}

// restore fetches a checkpoint to a directory that it makes.
func (f *fetching) restore(ctx context.Context, of berth.StoredCheckpoint, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening directory: %w", err)
	}
	defer root.Close() //nolint:errcheck // all files are closed

	return f.run.config.Restore(ctx, of, root, func(bytes int64) {
		f.note.say(ctx, fmt.Sprintf("fetching its checkpoint: %d of %d MiB", bytes>>20, (of.Bytes+1<<20-1)>>20))
	})
}

// replaceCheckpoint puts a whole checkpoint in the place of the directory of this host,
// which it moves aside. When it is cut off in between, the next try fetches again.
func (d dirs) replaceCheckpoint(whole, aside string) error {
	if err := os.MkdirAll(filepath.Dir(d.checkpoint), 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	if err := os.Rename(d.checkpoint, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("moving an older checkpoint aside: %w", err)
	}

	if err := os.Rename(whole, d.checkpoint); err != nil {
		return fmt.Errorf("putting a checkpoint in its place: %w", err)
	}

	return nil
}

// stillOurs asks whether the attempt may replace the directory of its trial: one that was given
// up while it fetched may not, for the container of another one may have it mounted.
// It asks until the database answers. Errors: fenced; unavailable when ctx ends.
func (f *fetching) stillOurs(ctx context.Context) error {
	r := f.run
	f.note.text, f.note.at = "puts its checkpoint in its place", time.Now()

	return patiently(ctx, func() error {
		return r.records.NoteWait(ctx, r.who.Attempt.ID, r.order.Token, f.note.text)
	})
}

// takes reports whether a checkpoint can be fetched to this host. The limit of the sweep file is the same on each host,
// that of this host must not end the trial. Errors: exhausted.
func (r *run) takes(bytes int64) error {
	if limit, own := r.outputLimit(); !own && bytes > limit {
		return berth.Errorf(berth.KindExhausted, "the checkpoint has %s, and an attempt may keep %s of files on host %s (--output-limit)",
			berth.BytesText(bytes), berth.BytesText(limit), r.config.HostName)
	}

	return r.headroom(bytes, "fetching the checkpoint")
}

// headroom reports whether the disk would have its headroom with so much more on it. Errors: exhausted.
func (e *Executor) headroom(more int64, doing string) error {
	if e.config.DiskFree == nil {
		return nil
	}

	free, _, err := e.config.DiskFree()
	if err != nil {
		e.log.Warn("reading what is free on the host's disks", "error", err)

		return nil
	}

	if free-more < e.config.DiskHeadroom {
		return berth.Errorf(berth.KindExhausted, "%s takes %s, and the disk of host %s has %s free, of which %s stay free (--disk-headroom)",
			doing, berth.BytesText(more), e.config.HostName, berth.BytesText(free), berth.BytesText(e.config.DiskHeadroom))
	}

	return nil
}

// OpenCheckpoint opens the checkpoint directory of an attempt. No link leads out of it.
// Errors: not_found.
func (e *Executor) OpenCheckpoint(of berth.AttemptCheckpoint) (*os.Root, error) {
	root, err := os.OpenRoot(e.checkpointDir(of.TrialID, of.Stage))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, berth.Errorf(berth.KindNotFound, "opening the checkpoint of trial %s: %w", of.TrialID, err)
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

// Spool makes a file for the archive of a checkpoint of so many bytes. It has no name: a
// killed worker leaves none. Errors: exhausted when the disk has no room.
func (e *Executor) Spool(bytes int64) (*os.File, error) {
	if err := e.headroom(bytes, "storing a checkpoint"); err != nil {
		return nil, err
	}

	file, err := os.CreateTemp(e.config.DataDir, "checkpoint-")
	if err != nil {
		return nil, fmt.Errorf("making file: %w", err)
	}

	return file, os.Remove(file.Name())
}
