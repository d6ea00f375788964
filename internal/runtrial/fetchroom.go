package runtrial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/berthml/berth"
)

// ofDisk marks an error of this host's disk: whatever the system answers to a fetch says
// nothing of the checkpoint, and another host may take it. Errors of the store have a kind,
// which one of a disk has not. What is gone may be there at the next try.
func ofDisk(err error) error {
	if _, ofSystem := errors.AsType[syscall.Errno](err); !ofSystem || berth.KindOf(err) != berth.KindInternal || errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return fmt.Errorf("%w: %w", errDisk, err)
}

// notTaken says in plain words why this host's disk did not take a checkpoint; empty = that is
// not why the attempt did not start.
func notTaken(start *berth.StartError) string {
	switch {
	case errors.Is(start, errNoRoom):
		return "its host had no room for the one to go on from"
	case errors.Is(start, errTooLarge):
		return "its host lets an attempt keep less than the one to go on from has (--output-limit)"
	case errors.Is(start, errDisk):
		return "the disk of its host did not take the one to go on from: " + start.Error()
	default:
		return ""
	}
}

// fetchedBytes is how much of a checkpoint is there. Holes count: they need no room any more.
func fetchedBytes(part string) (bytes int64) {
	_ = walkBelow(part, func(_ string, info fs.FileInfo) error { // what cannot be read counts as not there
		if info.Mode().IsRegular() {
			bytes += info.Size()
		}

		return nil
	})

	return bytes
}

// roomFor reports whether the disk has room for a checkpoint, some of which is there,
// above what is kept free. Errors: exhausted.
func (r *run) roomFor(bytes, there int64) error {
	return r.headroom(max(bytes-there, 0), func() string {
		return fmt.Sprintf("the checkpoint has %s, of which %s are there", berth.BytesText(bytes), berth.BytesText(there))
	})
}

// headroom reports whether the disk would have its headroom with so much more on it. Errors: exhausted.
func (r *run) headroom(more int64, what func() string) error {
	if r.config.DiskFree == nil {
		return nil
	}

	free, _, err := r.config.DiskFree()
	if err != nil {
		r.log.Warn("reading what is free on the host's disks", "error", err)

		return nil
	}

	if free-more < r.config.DiskHeadroom {
		return berth.Errorf(berth.KindExhausted, "%s, and the disk of host %s has %s free, of which %s stay free (--disk-headroom): %w",
			what(), r.config.HostName, berth.BytesText(free), berth.BytesText(r.config.DiskHeadroom), errNoRoom)
	}

	return nil
}

// fetchGuard ends a fetch that this host must not end: others write to the disk meanwhile, and
// what the checkpoint takes on the disk is known only when it is there.
type fetchGuard struct {
	run  *run
	part string
	next time.Time // of its next look
}

// look says why the fetch is to end; nil = it goes on. It looks no more often than the disk is
// looked at while a container runs.
func (g *fetchGuard) look(ctx context.Context) error {
	began := time.Now()
	if began.Before(g.next) {
		return nil
	}

	err := cmp.Or(g.room(), g.kept(ctx))
	g.next = time.Now().Add(max(lookEvery, g.run.walkPause(time.Since(began))))

	return err
}

// room: whoever fills the disk is charged with it, so a fetch leaves the headroom to those that run.
func (g *fetchGuard) room() error {
	return g.run.headroom(0, func() string { return "others wrote to it while the checkpoint was fetched" })
}

// kept: what was fetched must not end the trial as having written too much here. What the sweep
// file bounds is the same on each host.
func (g *fetchGuard) kept(ctx context.Context) error {
	limit, own := g.run.outputLimit()
	if own || sizeBelow(ctx, limit, g.part) <= limit {
		return nil
	}

	return berth.Errorf(berth.KindExhausted, "the checkpoint takes more than the %s of files that an attempt may keep on host %s (--output-limit): %w",
		berth.BytesText(limit), g.run.config.HostName, errTooLarge)
}
