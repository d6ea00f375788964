package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/filetime"
)

// unstorableError is a checkpoint that cannot be stored as it is: half of one is useless.
type unstorableError struct{ why string }

func (e unstorableError) Error() string { return e.why }

func unstorable(format string, args ...any) error {
	return unstorableError{fmt.Sprintf(format, args...)}
}

// asUnstorable turns missing permission into unstorableError, and marks an error of the disk
// with errBroken.
func asUnstorable(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, fs.ErrPermission):
		return unstorable("it cannot be read: %s", err.Error())
	case ofBlock(err):
		return fmt.Errorf("%w: %w", errBroken, err)
	default:
		return err
	}
}

// errBroken says that the disk of this host fails to read the file.
var errBroken = errors.New("it cannot be read")

// ofBlock reports whether a disk gave this error for a file. Missing files, too many open files
// and no memory pass by themselves.
func ofBlock(err error) bool {
	errno, ofSystem := errors.AsType[syscall.Errno](err)
	if !ofSystem || berth.KindOf(err) != berth.KindInternal {
		return false
	}

	return !slices.Contains([]syscall.Errno{syscall.ENOENT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN}, errno)
}

// item is an entry of a checkpoint found by a walk.
type item struct {
	berth.CheckpointEntry

	info    fs.FileInfo
	touched time.Time
}

func (i item) mode() fs.FileMode { return fs.FileMode(i.Mode) }

// same reports whether the item is unchanged. Reading a file changes no field that
// counts, and a directory's size means nothing. Copy tools and os.utime put an old
// time on new content, but the kernel's change time shows it.
func (i item) same(as item) bool {
	return i.looksLike(as) && os.SameFile(i.info, as.info) && (!i.mode().IsRegular() || i.touched.Equal(as.touched))
}

// looksLike reports whether both are the same for a fetch, without their content.
func (i item) looksLike(as item) bool {
	return i.Path == as.Path && i.Mode == as.Mode && i.UID == as.UID && i.GID == as.GID && i.Bytes == as.Bytes && i.Target == as.Target &&
		i.Changed.Equal(as.Changed)
}

func sameItems(a, b []item) bool { return slices.EqualFunc(a, b, item.same) }

// sameContent reports whether both were read and give the same fetch.
func sameContent(a, b []item) bool {
	return slices.EqualFunc(a, b, func(a, b item) bool { return a.looksLike(b) && a.Digest == b.Digest })
}

// snapshot lists all entries below root, by path. Errors: unstorableError for an
// entry that must not, or cannot, be stored; fs.ErrNotExist for one that was
// removed in between.
func snapshot(ctx context.Context, root *os.Root, limits Limits) (items []item, err error) {
	files, bytes := 0, int64(0)

	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}

		if len(items) >= entriesPerFile*limits.Files {
			return unstorable("it has more than %d files and directories", entriesPerFile*limits.Files)
		}

		one, err := itemAt(root, name, entry)
		if err != nil {
			return err
		}

		switch {
		case one.mode()&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0:
			return nil // nothing in it lasts
		case !utf8.ValidString(name) || !utf8.ValidString(one.Target):
			return unstorable("the name of %q is no UTF-8", name)
		case len(name) > pathBytes:
			return unstorable("the path of %q is longer than %d bytes", name[:64]+"…", pathBytes)
		}

		if one.mode().IsRegular() {
			files++
			bytes += one.Bytes
		}

		switch {
		case files > limits.Files:
			return unstorable("it has more than %d files", limits.Files)
		case bytes > limits.Bytes:
			return unstorable("it is larger than %s (--output-limit)", berth.BytesText(limits.Bytes))
		}

		items = append(items, one)

		return nil
	})

	return items, err
}

func itemAt(root *os.Root, name string, entry fs.DirEntry) (one item, err error) {
	if one.info, err = entry.Info(); err != nil {
		return one, err
	}

	one.CheckpointEntry = berth.CheckpointEntry{Path: name, Mode: uint32(one.info.Mode()), Changed: one.info.ModTime()}
	one.touched = filetime.Changed(one.info)

	if stat, ok := one.info.Sys().(*syscall.Stat_t); ok {
		one.UID, one.GID = int(stat.Uid), int(stat.Gid)
	}

	switch {
	case one.mode().IsRegular():
		one.Bytes = one.info.Size()
	case one.mode()&fs.ModeSymlink != 0:
		one.Target, err = root.Readlink(name)
	}

	return one, err
}

// hasFile reports whether there is more than directories.
func hasFile(items []item) bool {
	return slices.ContainsFunc(items, func(i item) bool { return !i.mode().IsDir() })
}

// sumDigests fills in the digests of the files. It does not read an unchanged file again
// (read has the last ones by path): a small file may change all the time beside a
// large one that stays.
func sumDigests(ctx context.Context, root *os.Root, items []item, read map[string]item) error {
	for n := range items {
		i := &items[n]
		if !i.mode().IsRegular() {
			continue
		}

		if was, found := read[i.Path]; found && was.same(*i) {
			i.Digest = was.Digest

			continue
		}

		delete(read, i.Path) // forgets a file that changes while it is read

		artifact, err := found{path: i.Path, info: i.info}.digest(ctx, root)
		if err != nil {
			return err
		}

		i.Digest = artifact.Digest
		read[i.Path] = *i
	}

	return nil
}
