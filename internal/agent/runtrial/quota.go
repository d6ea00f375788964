package runtrial

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berthml/berth/internal/failure"
)

const (
	// sizeEvery is how often the files of a job are measured: by looking, because
	// ext4 knows no quota per directory without a mount option (reliability.md,
	// failure 34).
	sizeEvery = time.Second
	// walkShare keeps all walks through the directories of all attempts below 0.5 % of a
	// core, for each of three sorts: a walk takes 5 µs an entry.
	walkShare = 200
	// entryBytes is what a file or directory counts at least: its inode and name.
	entryBytes = 4 << 10
	// blockBytes is the unit of st_blocks (stat(2)), whatever the file system's is.
	blockBytes = 512
)

// walkPause is how long to wait after a walk through directories of an attempt that took
// so long, at least. Attempts share what walks may take.
func (e *Executor) walkPause(took time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()

	return walkShare * took * time.Duration(max(len(e.claims), 1))
}

// watchSize tells excess once when the job's files take more than they may. A
// last look after the exit makes the limit the same for a quick job. The working
// directory has its own pauses: that of an image with thousands of files keeps nothing
// from looking where jobs mostly write.
func (r *run) watchSize(ctx context.Context, exited <-chan struct{}, excess chan<- failure.Intent) error {
	limit, _ := r.outputLimit()

	var (
		work, written int64
		workAt        time.Time // when to walk the working directory again
	)

	for last := false; ; {
		began := time.Now()

		if last || !began.Before(workAt) {
			work = sizeBelow(ctx, limit+r.dirs.copied, r.dirs.work()) - r.dirs.copied
			workAt = time.Now().Add(r.walkPause(time.Since(began)))
			began = time.Now()
		}

		written = sizeBelow(ctx, limit-work, r.dirs.written()...)
		r.sized.Store(work + written)

		if work+written > limit {
			excess <- failure.IntentQuota

			return nil
		}

		if last {
			return nil
		}

		select {
		case <-time.After(max(sizeEvery, r.walkPause(time.Since(began)))):
		case <-exited:
			last = true
		case <-ctx.Done():
			return nil
		}
	}
}

// outputLimit is how many bytes of files the attempt may write; own says that the sweep
// file bounds it, not the worker.
func (r *run) outputLimit() (limit int64, own bool) {
	limit = r.config.Bounds.OutputLimit
	if most := int64(r.who.Spec.Limits.MaxOutput); most > 0 && most < limit {
		return most, true
	}

	return limit, false
}

var errEnough = errors.New("larger than that")

// size is what the job's files take on the disk. It stops to count above enough.
// Holes of sparse files take nothing. Links are not followed, and what cannot
// be read counts as empty.
func (d dirs) size(ctx context.Context, enough int64) int64 {
	return sizeBelow(ctx, enough+d.copied, append(d.written(), d.work())...) - d.copied
}

func (d dirs) work() string { return filepath.Join(d.attempt, workName) }

// written are the directories that hold only what the job wrote.
func (d dirs) written() []string { return []string{d.out, d.shim, d.checkpoint} }

// sizeBelow is what all below some directories takes, as size counts it.
func sizeBelow(ctx context.Context, enough int64, in ...string) (total int64) {
	for _, dir := range in {
		if walkBelow(dir, func(_ string, info fs.FileInfo) error {
			total += max(diskBytes(info), entryBytes)

			if total > enough {
				return errEnough
			}

			return ctx.Err()
		}) != nil {
			break
		}
	}

	return total
}

// walkBelow calls fn for everything below dir with its path from there, however the job moves it about
// meanwhile: it never leaves dir.
func walkBelow(dir string, fn func(path string, info fs.FileInfo) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil // not there: nothing below it
	}
	defer root.Close() //nolint:errcheck // only read

	return walkRoot(root, "", fn)
}

// namesAtOnce are read of a directory.
const namesAtOnce = 1000

// walkRoot is walkBelow for an open directory; above is its path. Names that are no
// UTF-8 are names, too, which io/fs does not take.
func walkRoot(root *os.Root, above string, fn func(path string, info fs.FileInfo) error) error {
	dir, err := root.Open(".")
	if err != nil {
		return nil // closed to us
	}
	defer dir.Close() //nolint:errcheck // only read

	for {
		names, err := dir.Readdirnames(namesAtOnce)

		for _, name := range names {
			if err := walkEntry(root, above, name, fn); err != nil {
				return err
			}
		}

		if err != nil {
			return nil // its end, or it is gone
		}
	}
}

func walkEntry(root *os.Root, above, name string, fn func(path string, info fs.FileInfo) error) error {
	info, err := root.Lstat(name)
	if err != nil {
		return nil // gone
	}

	if err := fn(above+name, info); err != nil || !info.IsDir() {
		return err
	}

	below, err := root.OpenRoot(name)
	if err != nil {
		return nil // gone, or closed to us
	}
	defer below.Close() //nolint:errcheck // only read

	return walkRoot(below, above+name+"/", fn)
}

func diskBytes(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * blockBytes
	}

	return info.Size()
}

// empty removes what the job wrote, its checkpoints only when it may not keep them.
func (d dirs) empty(checkpoints bool) error {
	var all error

	written := []string{d.out}
	if checkpoints {
		written = append(written, d.checkpoint)
	}

	for _, dir := range written {
		entries, err := os.ReadDir(dir)
		all = errors.Join(all, err)

		for _, entry := range entries {
			all = errors.Join(all, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}

	return errors.Join(all, os.RemoveAll(d.work()))
}
