package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// CheckpointList is the database for Restore.
type CheckpointList interface {
	// ListCheckpoint reads the entries of a whole checkpoint. Errors:
	// not_found.
	ListCheckpoint(ctx context.Context, id string) ([]berth.CheckpointEntry, error)
}

// Restore writes a checkpoint from the store below root and checks the SHA-256 of
// each file. It skips files that an earlier call wrote. It calls told with the bytes
// present. Errors: not_found when the checkpoint or an object of it is gone;
// berth.ErrDamaged when an object differs from its name; unavailable, also while the
// store refuses the credentials; of the disk.
func (s *Store) Restore(ctx context.Context, list CheckpointList, id string, root *os.Root, told func(bytes int64)) error {
	entries, err := list.ListCheckpoint(ctx, id)
	if err != nil {
		return err
	}

	there := int64(0)

	for _, e := range entries {
		if err := s.restore(ctx, root, e, func(bytes int64) { told(there + bytes) }); err != nil {
			err = fmt.Errorf("fetching %q of a checkpoint: %w", e.Path, err)
			if berth.KindOf(err) == berth.KindInvalid && !errors.Is(err, berth.ErrDamaged) { // a person must change something; the object may be whole
				err = berth.Errorf(berth.KindUnavailable, "%w", err)
			}

			return err
		}

		there += e.Bytes
		told(there)
	}

	put := comeAlready(time.Now(), entries)

	for _, e := range slices.Backward(entries) { // writing an entry changes the time of its directory
		e.Changed = cmp.Or(put[e.Changed.UnixNano()], e.Changed)

		if err := dress(root, e); err != nil {
			return fmt.Errorf("restoring owner and time of %q of a checkpoint: %w", e.Path, err)
		}
	}

	return nil
}

func (s *Store) restore(ctx context.Context, root *os.Root, e berth.CheckpointEntry, told func(bytes int64)) error {
	mode := fs.FileMode(e.Mode)

	switch {
	case mode.IsDir():
		if e.Path == "." {
			return nil
		}

		if err := root.MkdirAll(e.Path, 0o700); err != nil {
			return err
		}

		return root.Chmod(e.Path, 0o700) // an earlier call may have closed it
	case mode&fs.ModeSymlink != 0:
		if err := root.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}

		return root.Symlink(e.Target, e.Path)
	default:
		if isWhole(ctx, root, e) {
			return nil
		}

		return s.fetch(ctx, root, e, told)
	}
}

// isWhole reports whether a file exists with the right content.
func isWhole(ctx context.Context, root *os.Root, e berth.CheckpointEntry) bool {
	info, err := root.Lstat(e.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != e.Bytes {
		return false
	}

	is, err := found{path: e.Path, info: info}.digest(ctx, root)

	return err == nil && is.Digest == e.Digest
}

// fetch goes on where an earlier call stopped in the file. It begins again when a power
// cut damaged the first part, or when the store sends the whole file.
func (s *Store) fetch(ctx context.Context, root *os.Root, e berth.CheckpointEntry, told func(bytes int64)) error {
	if err := root.MkdirAll(path.Dir(e.Path), 0o700); err != nil {
		return err
	}

	from := begun(root, e)

	err := s.fetchFrom(ctx, root, e, from, told)
	if from > 0 && errors.Is(err, berth.ErrDamaged) {
		return s.fetchFrom(ctx, root, e, 0, told)
	}

	return err
}

// begun is how many bytes of a file an earlier call wrote. It ends where it wrote last.
func begun(root *os.Root, e berth.CheckpointEntry) int64 {
	info, err := root.Lstat(e.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= e.Bytes {
		return 0
	}

	return info.Size() / holeBytes * holeBytes
}

// fetchFrom writes a file from an offset on, and checks the SHA-256 of all of it.
func (s *Store) fetchFrom(ctx context.Context, root *os.Root, e berth.CheckpointEntry, from int64, told func(bytes int64)) (err error) {
	file, err := root.OpenFile(e.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	sum := sha256.New()

	if _, err := io.Copy(sum, patient{ctx, io.NewSectionReader(file, 0, from)}); err != nil {
		return err
	}

	if err := file.Truncate(from); err != nil { // old bytes behind it must not show through a hole
		return err
	}

	if from > 0 {
		told(from)
	}

	outer := ctx

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	timer := time.AfterFunc(s.readStall, func() {
		cancel(berth.Errorf(berth.KindUnavailable, "reading from the store %q: %w for %s", s.where, errReadStalled, s.readStall))
	})
	defer timer.Stop()

	r, err := s.Read(ctx, e.Digest, from, -1)
	if err != nil {
		return orStalled(ctx, err)
	}
	defer r.Close() //nolint:errcheck // only read

	source := &failing{r: patient{ctx, io.LimitReader(timed{r, timer, s.readStall}, e.Bytes-from+1)}}

	content := &sparse{file: file, at: from}
	n, err := io.Copy(io.MultiWriter(content, sum, &counted{bytes: from, told: told}), source)

	switch {
	case source.err != nil && outer.Err() != nil:
		return outer.Err()
	case source.err != nil:
		return orStalled(ctx, s.failed("reading from", source.err))
	case err != nil:
		return err
	case from+n != e.Bytes || berth.Digest(sum.Sum(nil)) != e.Digest:
		return berth.Errorf(berth.KindInvalid, "the object %s in the store %q is damaged: %w", e.Digest, s.where, berth.ErrDamaged)
	default:
		return cmp.Or(content.end(), file.Sync())
	}
}

// comeAlready maps each future time to a past one, by its nanoseconds: the clock of the
// writing host is ahead, or a program dated the file, and on this host a file must not look
// newer than files written next. The times keep their order, behind all past ones.
func comeAlready(now time.Time, entries []berth.CheckpointEntry) map[int64]time.Time {
	var (
		ahead  []int64
		newest = now.Add(-time.Hour) // newest past time, or an hour ago
	)

	for _, e := range entries {
		switch {
		case e.Changed.After(now):
			ahead = append(ahead, e.Changed.UnixNano())
		case e.Changed.After(newest):
			newest = e.Changed
		}
	}

	slices.Sort(ahead)
	ahead = slices.Compact(ahead)
	put := make(map[int64]time.Time, len(ahead))

	for n, at := range ahead {
		put[at] = newest.Add(time.Duration(float64(now.Sub(newest)) * float64(n+1) / float64(len(ahead))))
	}

	return put
}

// timed runs a timer while it waits for a read, and not while the data is written: each
// byte restarts it.
type timed struct {
	r     io.Reader
	timer *time.Timer
	after time.Duration
}

func (t timed) Read(p []byte) (int, error) {
	t.timer.Reset(t.after)
	defer t.timer.Stop()

	return t.r.Read(p)
}

// counted tells how much was written to it.
type counted struct {
	bytes int64
	told  func(bytes int64)
}

func (c *counted) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	c.told(c.bytes)

	return len(p), nil
}

// dress gives an entry its permissions, owner and time. Without the right to give
// files away, all users may read and write them: the directories above are closed.
func dress(root *os.Root, e berth.CheckpointEntry) error {
	mode := fs.FileMode(e.Mode)
	err := root.Lchown(e.Path, e.UID, e.GID)
	if errors.Is(err, fs.ErrPermission) {
		err = nil
		mode |= 0o666

		if mode.IsDir() {
			mode |= 0o777
		}
	}

	if err != nil || mode&fs.ModeSymlink != 0 {
		return err
	}

	if err := root.Chmod(e.Path, mode&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}

	return root.Chtimes(e.Path, e.Changed, e.Changed)
}
