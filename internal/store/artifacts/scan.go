package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/berthml/berth"
)

// Limits bound the stored files of one attempt. Zero values are defaults.
type Limits struct {
	Files int   // default 10,000
	Bytes int64 // of all its files; default 10 GiB
}

const (
	defaultFiles = 10_000
	defaultBytes = 10 << 30
	// pathBytes is the longest path (migration 032).
	pathBytes = 1024
	// reasonsKept is how many left out files are listed with their reason.
	reasonsKept = 1000
	// entriesPerFile bounds how many entries of a directory are read.
	entriesPerFile = 20
)

func (l Limits) orDefault() Limits {
	return Limits{Files: cmp.Or(l.Files, defaultFiles), Bytes: cmp.Or(l.Bytes, defaultBytes)}
}

// found is a file of an attempt.
type found struct {
	path string
	info fs.FileInfo
}

// leftOut counts the files that are not stored, and keeps why of the first.
type leftOut struct {
	count int
	first []berth.LeftOut
}

func (l *leftOut) add(path, format string, args ...any) {
	l.count++

	if len(l.first) < reasonsKept {
		path = strings.ToValidUTF8(path, "\ufffd")
		if len(path) > pathBytes {
			path = strings.ToValidUTF8(path[:pathBytes], "") + "…"
		}

		l.first = append(l.first, berth.LeftOut{Path: path, Reason: fmt.Sprintf(format, args...)})
	}
}

var errEnough = errors.New("enough")

// scan lists the regular files below root, by path. No link is followed.
func scan(ctx context.Context, root *os.Root, limits Limits, left *leftOut) ([]found, error) {
	var (
		files   []found
		bytes   int64
		entries int
	)

	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}

		if entries++; entries > entriesPerFile*limits.Files {
			left.add(name, "there are more than %d files and directories; nothing from here on was looked at", entriesPerFile*limits.Files)

			return errEnough
		}

		if err != nil {
			left.add(name, "it cannot be read: %s", plain(err))

			return nil
		}

		if entry.IsDir() {
			return nil
		}

		info, err := entry.Info()
		if err != nil {
			left.add(name, "it cannot be read: %s", plain(err))

			return nil
		}

		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			left.add(name, "it is a symbolic link; links are not followed")
		case !info.Mode().IsRegular():
			left.add(name, "it is no regular file")
		case !utf8.ValidString(name):
			left.add(name, "its name is no UTF-8")
		case len(name) > pathBytes:
			left.add(name, "its path is longer than %d bytes", pathBytes)
		case len(files) >= limits.Files:
			left.add(name, "an attempt has at most %d stored files", limits.Files)
		case bytes+info.Size() > limits.Bytes:
			left.add(name, "with its %s the stored files of the attempt would be larger than %s (--output-limit)",
				berth.BytesText(info.Size()), berth.BytesText(limits.Bytes))
		default:
			files = append(files, found{path: name, info: info})
			bytes += info.Size()
		}

		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}

	return files, err
}

// open opens the file that was found, and no other file that took its name since. It
// does not block on a FIFO without a writer.
func (f found) open(root *os.Root) (*os.File, error) {
	file, err := root.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}

	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, f.info)) { // a new file may have the inode of a removed one
		err = ErrChanged
	}

	if err != nil {
		_ = file.Close() // only read

		return nil, err
	}

	return file, nil
}

// digest reads the file and returns its digest.
func (f found) digest(ctx context.Context, root *os.Root) (berth.Artifact, error) {
	file, err := f.open(root)
	if err != nil {
		return berth.Artifact{}, err
	}
	defer file.Close() //nolint:errcheck // only read

	sum := sha256.New()

	bytes, err := io.Copy(sum, patient(ctx, file))
	if err == nil && bytes != f.info.Size() {
		err = ErrChanged
	}

	return berth.Artifact{Path: f.path, Bytes: bytes, Digest: berth.Digest(sum.Sum(nil))}, err
}

// plain is an error without the path, which stands beside it.
func plain(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}

	return err.Error()
}

// digestOf reads the name of an object.
func digestOf(name string) (d berth.Digest, ok bool) {
	data, err := hex.DecodeString(path.Base(name))
	if err != nil || len(data) != len(d) || strings.ToLower(name) != name {
		return d, false
	}

	return berth.Digest(data), true
}
