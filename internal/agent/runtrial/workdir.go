package runtrial

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
)

const (
	workName     = "work"      // the attempt's working directory, in its directory
	workManifest = "work.json" // what the image has in it

	// workBytes and workEntries bound what is copied: every attempt has a copy of its
	// own. Code is far below; above are data sets and virtual environments.
	workBytes   = 64 << 20
	workEntries = 5000
	// workKept is how long the copy of an image's directory stays on the host after its last use.
	workKept = 7 * 24 * time.Hour
)

// ReadWorkdir reads a directory of an image; an empty dir is the image's own
// working directory. It returns where that is, and its content as a tar archive
// below a directory of its name. Errors: *berth.StartError when the image is not
// there; not_found when the directory is not; unavailable.
type ReadWorkdir func(ctx context.Context, image, dir string) (where string, content io.ReadCloser, err error)

// workCopy is what a worker knows of a directory of an image, beside the archive.
type workCopy struct {
	Target string // where it is in the image
	Why    string // it stays read-only; empty = it does not
}

// addWorkdir gives the attempt a copy of its working directory that it may write
// to: scripts save models and logs beside themselves, at the end of hours. Where
// that cannot be, the directory stays read-only like the rest of the image.
func (r *run) addWorkdir(ctx context.Context, l *berth.Launch) error {
	if r.config.Workdir == nil {
		return nil
	}

	archive, kept, err := r.workCopy(ctx, l.Image, l.Workdir)
	if err != nil {
		return err
	}

	if kept.Why != "" {
		r.log.Info("the working directory stays read-only", "attempt", r.who.Attempt.ID, "directory", kept.Target, "why", kept.Why)

		return nil
	}

	if covered(l.Mounts, kept.Target) {
		return nil // the sweep has something else there
	}

	work := r.dirs.work()
	if _, err := os.Lstat(work); errors.Is(err, fs.ErrNotExist) { // else an earlier run made it, and the job may have written to it
		if err := r.dirs.unpackWork(archive); err != nil {
			_ = os.Remove(archive) // the next try makes the copy anew: it may be this one's fault

			return berth.Errorf(berth.KindUnavailable, "copying the working directory of attempt %s: %w", r.who.Attempt.ID, err)
		}
	}

	l.Mounts = append(l.Mounts, berth.Mount{Source: work, Target: kept.Target})

	return nil
}

// workCopy returns the host's copy of a directory of an image.
func (r *run) workCopy(ctx context.Context, image, dir string) (archive string, kept workCopy, err error) {
	sum := sha256.Sum256([]byte(image + "\n" + dir))
	archive = filepath.Join(r.config.DataDir, "workdirs", hex.EncodeToString(sum[:])+".tar")

	err = r.withImage(ctx, image, func() error { // it waits for its image without the lock: others may have theirs
		if err := r.copying.Acquire(ctx, 1); err != nil {
			return context.Cause(ctx)
		}
		defer r.copying.Release(1)

		kept, err = r.makeCopy(ctx, image, dir, archive)

		return err
	})

	return archive, kept, err
}

// makeCopy makes the host's copy of a directory of an image, unless it is there.
func (r *run) makeCopy(ctx context.Context, image, dir, archive string) (workCopy, error) {
	if found, _ := r.copies.Load(archive); found != nil {
		kept, now := found.(workCopy), time.Now() //nolint:forcetypeassert // only these are stored
		if kept.Why != "" || os.Chtimes(archive, now, now) == nil {
			return kept, nil
		}
	}

	if err := os.MkdirAll(filepath.Dir(archive), 0o700); err != nil {
		return workCopy{}, fmt.Errorf("making directory: %w", err)
	}

	r.forgetCopies(filepath.Dir(archive))

	kept, err := r.fetchWork(ctx, image, dir, archive)
	if err == nil {
		r.copies.Store(archive, kept)
	}

	return kept, err
}

// covered reports whether a mount hides a directory.
func covered(mounts []berth.Mount, dir string) bool {
	return slices.ContainsFunc(mounts, func(m berth.Mount) bool { return m.Target == dir || strings.HasPrefix(dir, m.Target+"/") })
}

// fetchWork copies a directory of an image into an archive on the host.
func (r *run) fetchWork(ctx context.Context, image, dir, archive string) (workCopy, error) {
	where, content, err := r.config.Workdir(ctx, image, dir)

	switch {
	case berth.KindOf(err) == berth.KindNotFound:
		return workCopy{Target: where, Why: "the image does not have it"}, nil
	case err != nil:
		return workCopy{}, err
	}
	defer content.Close() //nolint:errcheck // only read

	kept := workCopy{Target: where}
	if !writableWorkdir(where) {
		kept.Why = "it belongs to the system"

		return kept, nil
	}

	temporary := archive + ".tmp"

	size, err := writeArchive(temporary, content)
	if err != nil {
		return kept, berth.Errorf(berth.KindUnavailable, "copying %s of image %s: %w", where, image, err)
	}

	if kept.Why, err = tooLarge(temporary, size); kept.Why != "" || err != nil {
		return kept, errors.Join(err, os.Remove(temporary))
	}

	return kept, os.Rename(temporary, archive)
}

// mostArchive bounds what is read of a directory: a tar has a header for each file.
const mostArchive = 2 * workBytes

// writeArchive writes a file that outlives a power cut, of mostArchive and a byte at most.
func writeArchive(name string, content io.Reader) (n int64, err error) {
	file, err := os.Create(name) //nolint:gosec // G304: below our data directory
	if err != nil {
		return 0, err
	}

	n, err = io.Copy(file, io.LimitReader(content, mostArchive+1))

	return n, errors.Join(err, file.Sync(), file.Close())
}

// tooMuch says why a working directory stays read-only.
var tooMuch = fmt.Sprintf("it has more than %s or %d files", berth.BytesText(workBytes), workEntries)

// tooLarge says why an archive is not copied for each attempt; empty = it is.
func tooLarge(archive string, size int64) (string, error) {
	if size > mostArchive {
		return tooMuch, nil
	}

	var bytes, entries int64

	err := eachEntry(archive, func(h *tar.Header, _ string, _ io.Reader) error {
		bytes += h.Size
		entries++

		return nil
	})

	if bytes > workBytes || entries > workEntries {
		return tooMuch, err
	}

	return "", err
}

// forgetCopies removes the copies that nobody has used for workKept.
func (r *run) forgetCopies(dir string) {
	entries, err := os.ReadDir(dir)

	for _, entry := range entries {
		if info, gone := entry.Info(); gone == nil && time.Since(info.ModTime()) >= workKept {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}

	if err != nil {
		r.log.Warn("removing old copies of working directories", "error", err)
	}
}

// writableWorkdir reports whether a directory of an image is its program's, not
// the system's or Berth's.
func writableWorkdir(dir string) bool {
	if slices.Contains([]string{"/", "/usr", "/var", "/home", "/opt", "/usr/local"}, dir) {
		return false
	}

	system := []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/trial", "/usr"}
	for _, above := range system {
		if (dir == above || strings.HasPrefix(dir, above+"/")) && !strings.HasPrefix(dir, "/usr/src/") {
			return false
		}
	}

	return path.IsAbs(dir)
}
