package runtrial

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/berthml/berth"
)

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

// unpackWork makes the attempt's working directory. It is there as a whole or not at all.
// The job's user is the image's business, so files are open to all, as in dirs.make.
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

	marks := make(map[string]fileMark)

	err = eachEntry(archive, func(h *tar.Header, name string, content io.Reader) error {
		return unpack(root, h, name, content, marks)
	})
	if err != nil {
		return err
	}

	data, err := json.Marshal(marks)
	if err != nil {
		return berth.Errorf(berth.KindInternal, "encoding what is in a working directory: %w", err)
	}

	if err := writeFile(filepath.Join(d.attempt, workManifest), data); err != nil {
		return err
	}

	return errors.Join(os.Chmod(temporary, 0o777), os.Rename(temporary, filepath.Join(d.attempt, workName))) //nolint:gosec // G302: the job's user must write there
}

// unpack makes one entry of a working directory. What is no file, directory or symbolic
// link is left out.
func unpack(root *os.Root, h *tar.Header, name string, content io.Reader, marks map[string]fileMark) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o700); err != nil {
			return err
		}

		return root.Chmod(name, 0o777)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink: // within the directory, or to a file that is not copied
		_, target, _ := strings.Cut(strings.Trim(path.Clean(h.Linkname), "/"), "/")
		if err := root.Link(target, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}

		marks[name] = marks[target]

		return nil
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
	if err := errors.Join(root.Chmod(name, mode), root.Chtimes(name, h.ModTime, h.ModTime)); err != nil {
		return err
	}

	info, err := root.Lstat(name)
	if err != nil {
		return err
	}

	marks[name] = mark(info)

	return nil
}

func mark(info fs.FileInfo) fileMark { return fileMark{info.Size(), info.ModTime().UnixNano()} }

// gather moves what the job wrote into its working directory to its output, and
// removes the rest. The container has exited. Doing it again is harmless.
func (d dirs) gather() error {
	root, err := os.OpenRoot(d.attempt)
	if err != nil {
		return nil // the attempt never started here
	}
	defer root.Close() //nolint:errcheck // nothing is written through it

	if _, err := root.Lstat(workName); err != nil {
		return nil // it has none, or it was gathered
	}

	marks := make(map[string]fileMark)
	if data, err := root.ReadFile(workManifest); err == nil {
		if err := json.Unmarshal(data, &marks); err != nil {
			return berth.Errorf(berth.KindInternal, "reading what is in a working directory: %w", err)
		}
	}

	var all error

	err = fs.WalkDir(root.FS(), workName, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			all = errors.Join(all, err) // a directory that the job closed

			return nil
		}

		if entry.IsDir() && entry.Name() == "__pycache__" {
			return fs.SkipDir
		}

		info, err := entry.Info()

		switch {
		case err != nil:
			all = errors.Join(all, err)
		case info.Mode().IsRegular() && marks[strings.TrimPrefix(name, workName+"/")] != mark(info):
			target := path.Join(path.Base(mountOut), name)
			all = errors.Join(all, root.MkdirAll(path.Dir(target), 0o777), root.Rename(name, target))
		default: // the image has it, or it is no file
		}

		return nil
	})

	if all = errors.Join(all, err); all != nil {
		return fmt.Errorf("keeping what the job wrote into its working directory: %w", all) // it stays
	}

	return root.RemoveAll(workName)
}
