// Package dataset holds the data sets that an administrator gives the trials of a
// host: their names, their paths, which are mounted read-only, and their
// contents' versions.
package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

const (
	// Between two looks at the contents of the data sets. A look takes a hundredth of the time
	// at most: ImageNet, 1.3 million files, takes seconds.
	lookLeast = 10 * time.Second
	lookMost  = 10 * time.Minute
	lookShare = 100
	// mostEntries is how many entries of a data set are read; a larger data set
	// has no version.
	mostEntries = 5_000_000
	// versionDigits of a SHA-256 in hex are a version: enough to tell two apart.
	versionDigits = 16
)

// Sets are the data sets of a host. The sets are fixed; their contents may
// change.
type Sets struct {
	paths map[string]string      // by name; absolute, links resolved
	first map[string]fs.FileInfo // by name; the file at the path when the worker started

	changed chan struct{} // has an entry when a data set is to be looked at now

	mu       sync.Mutex
	versions map[string]version // by name; none = not looked at yet
}

// version is the result of a look at a data set.
type version struct {
	text string
	at   fs.FileInfo // of the path, before the look; nil = it was not there
}

// Parse reads NAME=PATH pairs. Errors: invalid, naming the pair and the fix.
func Parse(pairs []string) (*Sets, error) {
	s := &Sets{
		paths: make(map[string]string), first: make(map[string]fs.FileInfo), versions: make(map[string]version), changed: make(chan struct{}, 1),
	}

	var all error

	for _, pair := range pairs {
		if err := s.add(pair); err != nil {
			all = errors.Join(all, berth.Errorf(berth.KindInvalid, "--dataset %q: %w", pair, err))
		}
	}

	return s, all
}

func (s *Sets) add(pair string) error {
	name, path, found := strings.Cut(pair, "=")

	switch {
	case !found:
		return errors.New("write NAME=PATH, such as flowers=/data/flowers")
	case !spec.IsMountName(name):
		return fmt.Errorf("%q is no name: at most 128 letters, digits and ._-, the first a letter or digit", name)
	case s.paths[name] != "":
		return fmt.Errorf("%q is given twice", name)
	case !filepath.IsAbs(path):
		return fmt.Errorf("%q must be an absolute path", path)
	}

	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("it must be there when the worker starts: %w", err)
	}

	info, err := os.Stat(target)

	switch {
	case err != nil:
		return err
	case target == "/" || !info.IsDir() && !info.Mode().IsRegular():
		return errors.New("it must be a directory or a file, and not the root directory")
	}

	s.paths[name], s.first[name] = target, info

	return nil
}

// Names are the names, sorted.
func (s *Sets) Names() []string { return slices.Sorted(maps.Keys(s.paths)) }

// IDs are the data sets with their versions as last seen, sorted: NAME@VERSION, or NAME
// where the version is not known. It touches no file: a worker reports them while it says
// that it is alive, and a file server may hang.
func (s *Sets) IDs() []string {
	ids := s.Names()

	s.mu.Lock()
	defer s.mu.Unlock()

	for i, name := range ids {
		ids[i] = berth.DatasetMount{Name: name, Version: s.versions[name].text}.ID()
	}

	return ids
}

// Find returns the path of a data set, and its version as last seen; empty = not
// known. One whose path is gone or is another directory, as when its disk was
// unmounted or mounted since the worker started, is not found. A file that came to or
// went from the directory itself makes the version unknown at once, one further below
// at the next look.
func (s *Sets) Find(name string) (path, text string, found bool) {
	path = s.paths[name]

	now, err := os.Stat(path)
	if err != nil || !os.SameFile(now, s.first[name]) {
		return "", "", false
	}

	s.mu.Lock()
	last, looked := s.versions[name]
	s.mu.Unlock()

	if !looked {
		return path, "", true
	}

	if last.at == nil || !now.ModTime().Equal(last.at.ModTime()) || now.Size() != last.at.Size() {
		select {
		case s.changed <- struct{}{}:
		default:
		}

		return path, "", true
	}

	return path, last.text, true
}

// Watch looks at the contents of the data sets from time to time, until ctx
// ends.
func (s *Sets) Watch(ctx context.Context, log *slog.Logger) error {
	for len(s.paths) > 0 {
		began := time.Now()
		s.look(ctx, log)

		select {
		case <-time.After(min(max(lookShare*time.Since(began), lookLeast), lookMost)):
		case <-s.changed:
		case <-ctx.Done():
			return nil
		}
	}

	<-ctx.Done()

	return nil
}

func (s *Sets) look(ctx context.Context, log *slog.Logger) {
	for _, name := range s.Names() {
		at, err := os.Stat(s.paths[name])

		var text string
		if err == nil {
			text, err = versionOf(ctx, s.paths[name])
		}

		if ctx.Err() != nil {
			return
		}

		if err != nil {
			log.Warn("looking at a data set; attempts say no version of it", "dataset", name, "path", s.paths[name], "error", err)
		}

		s.mu.Lock()
		s.versions[name] = version{text: text, at: at}
		s.mu.Unlock()
	}
}

// versionOf is a digest of the names, sizes and times of all files. Contents are not
// read: of a terabyte that would take hours.
func versionOf(ctx context.Context, path string) (string, error) {
	sum, entries := sha256.New(), 0

	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if entries++; entries > mostEntries {
			return fmt.Errorf("it has more than %d files", mostEntries)
		}

		info, err := entry.Info()
		if err != nil {
			return err
		}

		if !entry.IsDir() { // a directory's own time and size do not show changes of its files
			below := strings.TrimPrefix(name, path)
			_, _ = fmt.Fprintf(sum, "%s\x00%d\x00%d\n", below, info.Size(), info.ModTime().UnixNano()) // a hash takes everything
		}

		return ctx.Err()
	})
	if err != nil {
		return "", err
	}

	return hex.EncodeToString(sum.Sum(nil))[:versionDigits], nil
}
