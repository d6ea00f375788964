package artifacts

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/filetime"
)

// checkpointMount is where a job sees its checkpoint: links may name it.
const checkpointMount = "/trial/checkpoint"

// unstorableError is a checkpoint that cannot be stored as it is: half of one is useless.
type unstorableError struct{ why string }

func (e unstorableError) Error() string { return e.why }

func unstorable(format string, args ...any) error {
	return unstorableError{fmt.Sprintf(format, args...)}
}

// asUnstorable turns missing permission into unstorableError.
func asUnstorable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return unstorable("it cannot be read: %s", err.Error())
	}

	return err
}

// entry is a file, directory or link of a checkpoint.
type entry struct {
	path   string // with slashes; "." is the checkpoint itself
	target string // of a link
	info   fs.FileInfo
}

// same reports whether the entry is unchanged. Copy tools put an old time on new
// content, but the kernel's change time shows it. Reading a file changes neither.
func (e entry) same(as entry) bool {
	if e.path != as.path || e.target != as.target || e.info.Mode() != as.info.Mode() || !e.info.ModTime().Equal(as.info.ModTime()) {
		return false
	}

	return !e.info.Mode().IsRegular() || e.info.Size() == as.info.Size() && filetime.Changed(e.info).Equal(filetime.Changed(as.info))
}

func sameEntries(a, b []entry) bool { return slices.EqualFunc(a, b, entry.same) }

// listCheckpoint lists all entries below root, by path, and the bytes of the files.
// Errors: unstorableError for an entry that cannot be stored; fs.ErrNotExist for one that
// was removed in between.
func listCheckpoint(ctx context.Context, root *os.Root, limits Limits) (entries []entry, bytes int64, err error) {
	files := 0

	err = fs.WalkDir(root.FS(), ".", func(name string, found fs.DirEntry, err error) error {
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}

		one := entry{path: name}
		if one.info, err = found.Info(); err != nil {
			return err
		}

		switch mode := one.info.Mode(); {
		case mode.IsRegular():
			files++
			bytes += one.info.Size()
		case mode&fs.ModeSymlink != 0:
			if one.target, err = root.Readlink(name); err != nil {
				return err
			}

			if !linkStays(name, one.target) {
				return unstorable("its link %q leads out of it, to %q", name, one.target)
			}
		case !mode.IsDir():
			return nil // nothing in sockets, FIFOs and devices lasts
		}

		switch {
		case files > limits.Files:
			return unstorable("it has more than %d files", limits.Files)
		case len(entries) >= entriesPerFile*limits.Files:
			return unstorable("it has more than %d files and directories", entriesPerFile*limits.Files)
		case bytes > limits.Bytes:
			return unstorable("it is larger than %s (--output-limit)", berth.BytesText(limits.Bytes))
		}

		entries = append(entries, one)

		return nil
	})

	return entries, bytes, asUnstorable(err)
}

// linkStays reports whether a link leads to a path of its checkpoint.
func linkStays(name, target string) bool {
	if path.IsAbs(target) {
		return strings.HasPrefix(path.Clean(target)+"/", checkpointMount+"/")
	}

	return filepath.IsLocal(path.Join(path.Dir(name), target))
}

// hasFile reports whether there is more than directories.
func hasFile(entries []entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return !e.info.IsDir() })
}

// readArchive reads a checkpoint as a tar: the same bytes for the same entries. Errors of
// Read: ErrChanged and fs.ErrNotExist for a file that is not as it was listed.
func readArchive(ctx context.Context, root *os.Root, entries []entry) io.ReadCloser {
	r, w := io.Pipe()

	go func() { // until r is closed
		archive := tar.NewWriter(w)

		for _, e := range entries {
			if err := e.write(ctx, archive, root); err != nil {
				_ = w.CloseWithError(err) // which returns nil

				return
			}
		}

		_ = w.CloseWithError(archive.Close())
	}()

	return r
}

// write adds an entry to an archive.
func (e entry) write(ctx context.Context, archive *tar.Writer, root *os.Root) error {
	header, err := e.header()
	if err == nil {
		err = archive.WriteHeader(header)
	}

	if err != nil || !e.info.Mode().IsRegular() {
		return err
	}

	file, err := found{path: e.path, info: e.info}.open(root)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read

	copied, err := io.Copy(archive, patient(ctx, file))
	if errors.Is(err, tar.ErrWriteTooLong) || err == nil && copied < e.info.Size() {
		err = ErrChanged
	}

	return err
}

// header is the entry's header. It has no times of reading, which change, and no names of users.
func (e entry) header() (*tar.Header, error) {
	h, err := tar.FileInfoHeader(e.info, e.target)
	if err != nil {
		return nil, err
	}

	h.Name, h.Format = e.path, tar.FormatPAX
	h.AccessTime, h.ChangeTime, h.Uname, h.Gname = time.Time{}, time.Time{}, "", ""

	if e.info.IsDir() {
		h.Name += "/"
	}

	return h, nil
}

// unpack writes the entries of an archive below root, which is empty. It refuses entries
// that would lead out of root. Errors: berth.ErrDamaged; of the disk.
func unpack(r io.Reader, root *os.Root) error {
	var headers []*tar.Header

	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return damaged("it is no tar: %s", err.Error())
		}

		if err := unpackEntry(archive, h, root); err != nil {
			return fmt.Errorf("unpacking %q of a checkpoint: %w", h.Name, err)
		}

		headers = append(headers, h)
	}

	for _, h := range slices.Backward(headers) { // writing an entry changes the time of its directory
		if err := dress(root, h); err != nil {
			return fmt.Errorf("restoring owner and time of %q of a checkpoint: %w", h.Name, err)
		}
	}

	return nil
}

func damaged(format string, args ...any) error {
	return berth.Errorf(berth.KindInvalid, "%s: %w", fmt.Sprintf(format, args...), berth.ErrDamaged)
}

func unpackEntry(content io.Reader, h *tar.Header, root *os.Root) error {
	h.Name = path.Clean(h.Name)

	switch {
	case !filepath.IsLocal(h.Name):
		return damaged("it leads out of the checkpoint")
	case h.Typeflag == tar.TypeDir:
		return root.MkdirAll(h.Name, 0o700)
	case h.Typeflag == tar.TypeSymlink && !linkStays(h.Name, h.Linkname):
		return damaged("its link leads out of the checkpoint, to %q", h.Linkname)
	case h.Typeflag == tar.TypeSymlink:
		return root.Symlink(h.Linkname, h.Name)
	case h.Typeflag != tar.TypeReg:
		return damaged("it is no file, directory or link")
	}

	file, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(file, content)

	return errors.Join(err, file.Sync(), file.Close())
}

// dress gives an entry its permissions, owner and time. Without the right to give
// files away, all users may read and write them: the directories above are closed.
func dress(root *os.Root, h *tar.Header) error {
	mode := h.FileInfo().Mode()

	err := root.Lchown(h.Name, h.Uid, h.Gid)
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

	if err := root.Chmod(h.Name, mode&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}

	return root.Chtimes(h.Name, h.ModTime, h.ModTime)
}
