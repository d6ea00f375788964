package artifacts

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/berthml/berth"
)

// settle has the names of objects survive a power cut before the database says that they are
// stored: of a store in a directory their content was synced, and the directories were not.
// Errors: unavailable.
func (s *Store) settle(objects []berth.Artifact) error {
	if s.dir == "" {
		return nil
	}

	dirs := make(map[string]bool)

	for _, o := range objects {
		for dir := filepath.Dir(filepath.Join(s.dir, key(o.Digest))); !dirs[dir]; dir = filepath.Dir(dir) {
			if dirs[dir] = true; dir == s.dir {
				break
			}
		}
	}

	for dir := range dirs {
		if err := s.sync(dir); err != nil {
			return s.failed("writing to", err)
		}
	}

	return nil
}

// syncDir syncs a directory, where the file system knows how.
func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // G304: below the store
	if err != nil {
		return err
	}

	if err = dir.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}

	return errors.Join(err, dir.Close())
}

// shareCopy makes a host's copy of a stored file the object itself, where both are on one file
// system, as with `berth dev`, so that the copy takes no disk. Elsewhere the copy stays.
// The attempt has ended, so its directories do not move. The second name is made in the
// store, where a Cleaner removes it if the process is killed here: beside the copy it would
// be a file of the trial.
func (s *Store) shareCopy(root *os.Root, a berth.Artifact) {
	if s.dir == "" {
		return
	}

	object := filepath.Join(s.dir, key(a.Digest))
	temporary := object + ".shared.tmp"

	if info, err := os.Lstat(object); err != nil || info.Size() != a.Bytes {
		return
	}

	if os.Link(object, temporary) != nil {
		return // a file system without second names, or another process does the same
	}

	_ = os.Rename(temporary, filepath.Join(root.Name(), a.Path)) // fails on another file system
	_ = os.Remove(temporary)                                     // which stays when both are one already
}
