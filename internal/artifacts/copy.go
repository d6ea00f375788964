package artifacts

import (
	"context"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/berthml/berth"
)

// databaseKey is the object that says which database of the installation the store
// belongs to: a restored copy has the same installation's id, and knows nothing of
// files that were stored after the dump.
const databaseKey = "database"

// Removable asks whether objects that the database does not name may be removed.
// Errors: conflict when the store belongs to another copy of the database, until a
// person says by Take that this one replaces it; unavailable; of the database.
func (s *Store) Removable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	ours, err := s.marks.Installation(ctx)
	if err != nil {
		return err
	}

	there, err := s.database(ctx, ours)
	if err != nil {
		return err
	}

	known := there.Database != "" && ours.Database != "" // else PostgreSQL does not say
	if there.ID == ours.ID && (!known || there.Database == ours.Database) {
		return nil
	}

	return berth.Errorf(berth.KindConflict, "the store %q is used by another copy of this database (installation %s): nothing is removed from it; "+
		"if this copy replaces it for good, run `berth adopt-temporal --take-artifacts`; a restore drill leaves it so", s.where, there.ID)
}

// Take makes the store this copy of the database's by a person's word.
// Errors: those of Ready.
func (s *Store) Take(ctx context.Context) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	ours, err := s.marks.Installation(ctx)
	if err != nil {
		return err
	}

	return s.writeDatabase(ctx, ours, false)
}

// database reads which database the store belongs to. It makes a store that does not
// say, or that another installation left, this one's.
func (s *Store) database(ctx context.Context, ours berth.Installation) (there berth.Installation, err error) {
	text, err := s.read(ctx, databaseKey)
	if gcerrors.Code(err) == gcerrors.NotFound {
		if err := s.writeDatabase(ctx, ours, true); err != nil {
			return there, err
		}

		text, err = s.read(ctx, databaseKey) // of two that do so at once, one was first
	}

	if err != nil {
		return there, s.failed("asking", err)
	}

	there.ID, there.Database, _ = strings.Cut(text, " ")

	if there.ID != s.installation && ours.ID == s.installation {
		return ours, s.writeDatabase(ctx, ours, false)
	}

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
