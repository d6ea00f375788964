package artifacts

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/berthml/berth"
)

// databaseKey is the object that says which database of the installation the store
// belongs to: a restored copy has the same installation's id, and knows nothing of
// files that were stored after the dump.
const databaseKey = "database"

// Removable asks whether objects that the database does not name may be removed. A
// store that does not say which database it belongs to, as the version before left
// it, becomes this one's when this one is known to be the installation's own.
// Errors: conflict when the store belongs to another copy of the database, or may,
// until a person says by Take that this one replaces it; unavailable; of the database.
func (s *Store) Removable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	err := s.ofThisCopy(ctx)
	if !errors.Is(err, errUnsaid) || s.Original == nil {
		return err
	}

	original, asked := s.Original(ctx)
	if asked != nil || !original {
		return cmp.Or(asked, err)
	}

	there, err := s.database(ctx)
	if err != nil {
		return err
	}

	ours, err := s.marks.Installation(ctx)
	if err != nil {
		return err
	}

	if there.ID == "" || ours.ID == s.installation && there.ID != ours.ID { // of several that do so at once, one is first
		if err := s.writeDatabase(ctx, ours, there.ID == ""); err != nil {
			return err
		}
	}

	return s.ofThisCopy(ctx)
}

// errUnsaid is a store that does not say which copy of the database it belongs to.
var errUnsaid = errors.New("the store does not say whose it is")

// ofThisCopy returns nil for a store that says that it belongs to this copy of the
// database. Errors: conflict, which is errUnsaid when it does not say.
func (s *Store) ofThisCopy(ctx context.Context) error {
	const next = "nothing is removed from it; if this copy replaces the other for good, run `berth adopt-temporal --replace-original --take-artifacts`; a restore drill leaves it so"

	ours, err := s.marks.Installation(ctx)
	if err != nil {
		return err
	}

	there, err := s.database(ctx)
	if err != nil {
		return err
	}

	known := there.Database != "" && ours.Database != "" // else PostgreSQL does not say

	switch {
	case there.ID == ours.ID && (!known || there.Database == ours.Database):
		return nil
	case there.ID == ours.ID || there.ID == s.installation:
		return berth.Errorf(berth.KindConflict, "the store %q is used by another copy of this database (installation %s): %s", s.where, there.ID, next)
	default:
		return berth.Errorf(berth.KindConflict, "%w: the store %q may be another copy's of this database, and this one may be restored: %s; "+
			"the original's server takes it by itself", errUnsaid, s.where, next)
	}
}

// Take makes the store this copy of the database's by a person's word.
// Errors: those of Ready.
func (s *Store) Take(ctx context.Context) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}

	return s.claim(ctx)
}

// claim writes that the store belongs to this database.
func (s *Store) claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	ours, err := s.marks.Installation(ctx)
	if err != nil {
		return err
	}

	return s.writeDatabase(ctx, ours, false)
}

// database reads which database the store belongs to; none = it does not say.
func (s *Store) database(ctx context.Context) (there berth.Installation, err error) {
	text, err := s.read(ctx, databaseKey)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return there, nil
	}

	if err != nil {
		return there, s.failed("asking", err)
	}

	there.ID, there.Database, _ = strings.Cut(text, " ")

	return there, nil
}

// writeDatabase writes which database the store belongs to; as first only if it does
// not say yet.
func (s *Store) writeDatabase(ctx context.Context, ours berth.Installation, first bool) error {
	err := s.bucket.WriteAll(ctx, databaseKey, []byte(ours.ID+" "+ours.Database), &blob.WriterOptions{ContentType: "text/plain", IfNotExist: first})
	if err != nil && gcerrors.Code(err) != gcerrors.FailedPrecondition {
		return s.failed("writing to", err)
	}

	return nil
}
