package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
)

// bond holds a Store to one copy of the database of one installation.
type bond struct {
	mu     sync.Mutex
	to     berth.Installation // ID empty = to none
	broken string             // what was found in its place; empty = it was there at the last look
	logged time.Time          // when broken was logged last
}

// bondLogged is between two lines about one other installation.
const bondLogged = time.Minute

// Bind holds the store to an installation, and to this copy of its database, from now
// on. While the database at its address is another's, a restored copy, or is being
// restored, every call fails as unavailable and reads and writes nothing: to a worker,
// its own attempts look like leftovers there. It goes on by itself when the database
// is back.
func (s *Store) Bind(to berth.Installation) {
	s.bond.mu.Lock()
	defer s.bond.mu.Unlock()

	s.bond.to = to
}

// prepare looks at a connection before the pool lends it: not usable = it is dead,
// and the pool takes another.
func (s *Store) prepare(ctx context.Context, conn *pgx.Conn) (usable bool, err error) {
	if err = s.checkBond(ctx, conn); err != nil && conn.IsClosed() {
		return false, nil
	}

	return true, err
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// checkBond asks a connection whether the database is still the store's. It asks
// nothing while the store is held to none.
// Errors: unavailable.
func (s *Store) checkBond(ctx context.Context, conn querier) error {
	want := s.bound()
	if want.ID == "" {
		return nil
	}

	found, err := installationOf(ctx, conn, want.Database != "")
	what := "is of installation " + found.ID
	next := "restore it, or correct --postgres-url"

	switch pg, _ := errors.AsType[*pgconn.PgError](err); {
	case err == nil && found.ID == want.ID && (want.Database == "" || found.Database == want.Database):
		s.noteBond("")

		return nil
	case err == nil && found.ID == want.ID:
		what = "is another copy of its database (" + found.Database + " in the place of " + want.Database + ")"
		next += "; when this copy replaces the other for good, run `berth adopt-temporal --replace-original`, then start this process again"
	case errors.Is(err, pgx.ErrNoRows) || pg != nil && pg.Code == codeUndefinedTable:
		what = "is empty or is being restored"
	case err != nil: // which says nothing of whose it is
		return translate(err, "reading which installation the database is of")
	}

	broken := berth.Errorf(berth.KindUnavailable, "this process serves installation %s, and the database at --postgres-url %s: nothing is read, started or "+
		"removed until that database is there again; %s", want.ID, what, next)
	s.noteBond(broken.Error())

	return broken
}

// installationOf reads which installation a database is of, and, when asked, which copy.
// pg_restore makes the foreign keys last: without them rows may be missing.
func installationOf(ctx context.Context, conn querier, which bool) (found berth.Installation, err error) {
	database := "''"
	if which {
		database = "(" + identityQuery + ")"
	}

	err = conn.QueryRow(ctx, "SELECT id::text, "+database+` FROM installation
		WHERE EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('leases') AND contype = 'f')`).Scan(&found.ID, &found.Database)

	return found, err
}

func (s *Store) bound() berth.Installation {
	s.bond.mu.Lock()
	defer s.bond.mu.Unlock()

	return s.bond.to
}

// noteBond logs that the installation is not there, when that is news and once a
// minute, and that it is there again.
func (s *Store) noteBond(broken string) {
	s.bond.mu.Lock()
	defer s.bond.mu.Unlock()

	switch before := s.bond.broken; {
	case broken == "" && before != "":
		s.log.Info("the database of this installation is there again", "installation", s.bond.to.ID)
	case broken != "" && (broken != before || time.Since(s.bond.logged) > bondLogged):
		s.log.Error(broken)
		s.bond.logged = time.Now()
	}

	s.bond.broken = broken
}

// inBond runs work that only reads on one state of the installation's database:
// one that is being replaced waits until work is done, or makes it fail.
func (s *Store) inBond(ctx context.Context, work func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := s.checkBond(ctx, tx); err != nil {
			return err
		}

		return work(tx)
	})
}
