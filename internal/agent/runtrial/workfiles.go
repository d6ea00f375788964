package runtrial

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// workFiles is what an attempt's working directory had when it was made.
type workFiles struct {
	Bytes int64               `json:"bytes"` // what it took on the disk
	Marks map[string]fileMark `json:"marks"` // by path; of a directory with a slash at its end
}

// fileMark tells whether a file was written since.
type fileMark struct {
	Size    int64 `json:"size"`
	Changed int64 `json:"changed"` // Unix time, ns
}

// eachEntry calls fn for everything in an archive below its first directory, with its
// path from there.
func eachEntry(archive string, fn func(h *tar.Header, name string, content io.Reader) error) error {
	file, err := os.Open(archive) //nolint:gosec // G304: below our data directory
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read

	for reader := tar.NewReader(file); ; {
		h, err := reader.Next()

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}

		_, name, _ := strings.Cut(strings.Trim(path.Clean(h.Name), "/"), "/")
		if name == "" {
			continue
		}

		if err := fn(h, name, reader); err != nil {
			return err
		}
	}
}

// unpackWork makes the attempt's working directory. It is there as a whole or not at all. The
// job's user is the image's business, so files are open to all, as in dirs.make.
func (d dirs) unpackWork(archive string) error {
	temporary := filepath.Join(d.attempt, workName+".tmp")
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}

	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}

	root, err := os.OpenRoot(temporary)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // what was written was closed

	files := workFiles{Marks: make(map[string]fileMark)}

	if err := eachEntry(archive, func(h *tar.Header, name string, content io.Reader) error {
		return files.unpack(root, h, name, content)
	}); err != nil {
		return err
	}

	_ = walkRoot(root, "", func(_ string, info fs.FileInfo) error {
		files.Bytes += max(diskBytes(info), entryBytes)

		return nil
	})

	if err := writeJSON(filepath.Join(d.attempt, workManifest), "what is in a working directory", files); err != nil {
		return err
	}

	return errors.Join(os.Chmod(temporary, 0o777), os.Rename(temporary, d.work())) //nolint:gosec // G302: the job's user must write there
}

// unpack makes one entry of a working directory. What is no file, directory or symbolic
// link is left out.
func (f *workFiles) unpack(root *os.Root, h *tar.Header, name string, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		f.Marks[name+"/"] = fileMark{}

		return errors.Join(root.MkdirAll(name, 0o700), root.Chmod(name, 0o777))
	case tar.TypeSymlink:
		if err := root.Symlink(h.Linkname, name); err != nil {
			return err
		}

		return f.mark(root, name)
	case tar.TypeLink: // within the directory, or to a file that is not copied
		_, target, _ := strings.Cut(strings.Trim(path.Clean(h.Linkname), "/"), "/")
		if err := root.Link(target, name); err != nil {
			return ignoreNotExist(err)
		}

		return f.mark(root, name)
	case tar.TypeReg:
	default:
		return nil
	}

	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}

	mode := fs.FileMode(0o666)
	if h.FileInfo().Mode()&0o111 != 0 {
		mode = 0o777
	}

	// Python's byte code is valid for one time of its source.
	return errors.Join(root.Chmod(name, mode), root.Chtimes(name, h.ModTime, h.ModTime), f.mark(root, name))
}

func (f *workFiles) mark(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil {
		f.Marks[name] = markOf(info)
	}

	return err
}

func markOf(info fs.FileInfo) fileMark { return fileMark{info.Size(), info.ModTime().UnixNano()} }

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return err
}

// workFiles is what the working directory had when it was made; nothing when the attempt
// has none.
func (d dirs) workFiles() (files workFiles) {
	_ = readJSON(filepath.Join(d.attempt, workManifest), &files)

	return files
}

// workNames are tried in turn for the working directory among the output: a job may have
// its own out/work.
const workNames = 100

// gather makes the working directory a part of the attempt's output, without what the image
// has there. The container has exited. Doing it again goes on.
func (d dirs) gather() error {
	if _, err := os.Lstat(d.work()); err != nil {
		return ignoreNotExist(err)
	}

	d.prune()

	target := filepath.Join(d.out, workName)
	for n := 2; n <= workNames; n++ {
		if _, err := os.Lstat(target); err != nil {
			break
		}

		target = filepath.Join(d.out, workName+"-"+strconv.Itoa(n))
	}

	if err := os.Rename(d.work(), target); err != nil {
		return fmt.Errorf("keeping what the job wrote into its working directory: %w", err)
	}

	_ = os.Remove(target) // when the job wrote nothing there

	return nil
}

// prune removes what the image has from the working directory, as far as the job did not change it.
// What cannot be removed stays among the output.
func (d dirs) prune() {
	files := d.workFiles()

	root, err := os.OpenRoot(d.work())
	if err != nil {
		return
	}
	defer root.Close() //nolint:errcheck // nothing is written through it

	// What is below a directory comes before it.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files.Marks))) {
		plain, directory := strings.CutSuffix(name, "/")

		info, err := root.Lstat(plain)
		if err == nil && directory == info.IsDir() && (directory || markOf(info) == files.Marks[name]) {
			_ = root.Remove(plain)
		}
	}
}
