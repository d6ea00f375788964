package cli

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// openName matches the names of a process's open files.
var openName = regexp.MustCompile(`^(/dev/(std|fd/)|/proc/)`)

// createOut begins a file. Its caller closes it in any case.
func createOut(path string) (*outFile, error) {
	mode := fs.FileMode(anyFile)

	info, err := os.Stat(path)
	// Behind a name such as /dev/stdout may be a file that the shell appends to.
	if err == nil && (!info.Mode().IsRegular() || openName.MatchString(path)) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) //nolint:gosec // G304: the user names a file of their own
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

	name := filepath.Join(filepath.Dir(path), ".berth-"+rand.Text()+".part")

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
