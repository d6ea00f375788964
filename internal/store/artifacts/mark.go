package artifacts

import (
	"context"
	"io"
	"os"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/berthml/berth"
)

const (
	// markKey is the object that says whose store it is.
	markKey = "installation"
	// markLimit bounds the bytes read of the mark: an id has 36 bytes, and the
	// identity of a database two numbers more.
	markLimit = 128
)

// Marks is the database for a Store.
type Marks interface {
	// StoreMarked reports whether NoteStoreMark was called for the store.
	StoreMarked(ctx context.Context, store string) (bool, error)
	// NoteStoreMark notes that the store has the mark of this installation.
	NoteStoreMark(ctx context.Context, store string) error
}

// Ready asks whether the store answers and belongs to this installation; the
// first that asks makes it its own. A store that was its own
// and has no mark any more is unavailable: a mount point is an empty directory while
// its disk is away.
// Errors: unavailable; invalid for a store that a person must change; conflict for
// one of another installation; of the database.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	owner, err := s.readOwner(ctx)
	if err == nil && owner == "" {
		owner, err = s.mark(ctx)
	}

	if err != nil {
		return err
	}

	if owner != s.installation {
		return s.anothers(owner)
	}

	if s.noted.Load() {
		return nil
	}

	if err := s.marks.NoteStoreMark(ctx, s.name()); err != nil {
		return err
	}

	s.noted.Store(true)

	return nil
}

// Check is Ready without writing. fresh = the store is new, without a mark, and
// belongs to no installation yet.
func (s *Store) Check(ctx context.Context) (fresh bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	owner, err := s.readOwner(ctx)
	if err == nil && owner != "" && owner != s.installation {
		err = s.anothers(owner)
	}

	return owner == "", err
}

// readOwner reads the owner of the store; empty = it is new. Errors: as of Ready,
// without conflict.
func (s *Store) readOwner(ctx context.Context) (owner string, err error) {
	if s.dir != "" { // gocloud makes a directory that is gone, and a disk that is not mounted is no place for files
		if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
			return "", berth.Errorf(berth.KindUnavailable, "asking the store %q: the directory is gone; mount its disk", s.where)
		}
	}

	owner, err = s.owner(ctx)

	switch {
	case err == nil:
		return owner, nil
	case gcerrors.Code(err) == gcerrors.NotFound:
		return "", s.unmarked(ctx)
	default:
		return "", s.failed("asking", err)
	}
}

func (s *Store) anothers(owner string) error {
	return berth.Errorf(berth.KindConflict, "the store --artifacts %q belongs to another Berth (%s), and each removes what it does not know: "+
		"give this one a directory of its own, or a prefix such as s3://bucket?prefix=second/", s.where, owner)
}

// TakeEmpty marks a store that has lost its mark as this installation's; its old
// objects are lost for good. It does not change a store with a mark. Errors: as
// of Ready.
func (s *Store) TakeEmpty(ctx context.Context) error {
	if _, err := s.mark(ctx); err != nil {
		return err
	}

	return s.Ready(ctx)
}

// name is the store's name in the database, the same for every process that uses the
// store.
func (s *Store) name() string {
	if s.dir != "" {
		return "file://" + s.dir
	}

	return s.where
}

// unmarked says why a store without a mark must not be made this installation's;
// nil = it is new. Errors: unavailable; invalid; of the database.
func (s *Store) unmarked(ctx context.Context) error {
	if there, err := s.bucket.IsAccessible(ctx); err != nil || !there {
		return s.failed("asking for", err)
	}

	marked, err := s.marks.StoreMarked(ctx, s.name())
	if err != nil || !marked {
		return err
	}

	return berth.Errorf(berth.KindUnavailable, "the store %q has lost its mark, the object %q: mount its disk, or start `berth server` once with "+
		"--artifacts-empty to use an empty one", s.where, markKey)
}

// mark writes the store's owner, unless it has one, and returns the owner.
func (s *Store) mark(ctx context.Context) (owner string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	err = s.bucket.WriteAll(ctx, markKey, []byte(s.installation), &blob.WriterOptions{ContentType: "text/plain", IfNotExist: true})
	if err != nil && gcerrors.Code(err) != gcerrors.FailedPrecondition {
		return "", s.failed("writing to", err)
	}

	if owner, err = s.owner(ctx); err != nil {
		return "", s.failed("asking", err)
	}

	return owner, nil
}

func (s *Store) owner(ctx context.Context) (string, error) {
	r, err := s.bucket.NewReader(ctx, markKey, nil)
	if err != nil {
		return "", err
	}
	defer r.Close() //nolint:errcheck // only read

	text, err := io.ReadAll(io.LimitReader(r, markLimit))

	return strings.TrimSpace(string(text)), err
}
