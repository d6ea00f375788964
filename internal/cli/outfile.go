package cli

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// outFile is a file that a command writes for its user. It writes into anything but a
// regular file, such as a device or a named pipe. It replaces a regular file once all
// of the new one is on the disk, and keeps its mode; a new file has the mode that the
// umask allows.
type outFile struct {
	*os.File

	to string // the name that the file gets; empty = it has its name
}

const anyFile = 0o666 // less the umask

// beside is a name that nothing has in the directory of a path.
func beside(path, end string) string {
	return filepath.Join(filepath.Dir(path), ".berth-"+rand.Text()+end)
}

// openDescriptor is the process's open file under a path such as /dev/stdout, at its
// position: the shell may have opened a file there to append to it. ok is false for a
// path of no descriptor.
func openDescriptor(path string) (file *os.File, ok bool, err error) {
	name := strings.Replace(path, "/proc/self/fd/", "/dev/fd/", 1)
	name = strings.NewReplacer("/dev/stdout", "/dev/fd/1", "/dev/stderr", "/dev/fd/2").Replace(name)

	text, found := strings.CutPrefix(name, "/dev/fd/")
	number, err := strconv.Atoi(text)

	if !found || errors.Is(err, strconv.ErrSyntax) {
		return nil, false, nil
	}

	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}

	own, err := syscall.Dup(number) // so that closing it leaves the process its own
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}

	return os.NewFile(uintptr(own), path), true, nil
}

// createOut begins a file. Its caller closes it in any case.
func createOut(path string) (*outFile, error) {
	if file, ok, err := openDescriptor(path); ok || err != nil {
		return &outFile{File: file}, err
	}

	mode := fs.FileMode(anyFile)

	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // G304: the user names a file of their own
		if err != nil {
			return nil, err
		}

		return &outFile{File: file}, nil
	}

	if err == nil {
		mode = info.Mode().Perm()

		if path, err = filepath.EvalSymlinks(path); err != nil { // replace the target of a link, not the link
			return nil, err
		}
	}

	name := beside(path, ".part")

	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode) //nolint:gosec // G304: beside it
	if err != nil {
		return nil, err
	}

	if info != nil { // the umask may have taken some of it
		if err := file.Chmod(mode); err != nil {
			return nil, errors.Join(err, file.Close(), os.Remove(name))
		}
	}

	return &outFile{File: file, to: path}, nil
}

// finish gives the file its name once the disk has it.
func (f *outFile) finish() error {
	if f.to == "" {
		return f.Close()
	}

	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}

	if err := os.Rename(f.Name(), f.to); err != nil {
		return err
	}

	f.to = ""

	return nil
}

// drop ends a file that was not finished, and leaves nothing of it.
func (f *outFile) drop() {
	_ = f.Close() // fails once it was finished

	if f.to != "" {
		_ = os.Remove(f.Name())
	}
}
