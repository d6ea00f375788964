package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
)

// Installation returns the database's installation.
func (s *Store) Installation(ctx context.Context) (berth.Installation, error) {
	row, err := s.q.GetInstallation(ctx, s.pool)
	if err != nil {
		return berth.Installation{}, translate(err, "reading the installation")
	}

	return berth.Installation{ID: row.ID, BoundAt: row.TemporalBoundAt, Alarm: row.Alarm}, nil
}

// Holds fails while the database is another installation's, is empty, or is being
// restored: a worker would take its own containers for leftovers there. pg_restore makes
// foreign keys last: without them rows may be missing. Errors: unavailable.
func (s *Store) Holds(ctx context.Context, installation string) error {
	var found string

	err := s.pool.QueryRow(ctx, `SELECT id::text FROM installation
		WHERE EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('leases') AND contype = 'f')`).Scan(&found)
	what := "is of installation " + found

	switch pg, _ := errors.AsType[*pgconn.PgError](err); {
	case err == nil && found == installation:
		return nil
	case errors.Is(err, pgx.ErrNoRows) || pg != nil && pg.Code == codeUndefinedTable:
		what = "is empty or is being restored"
	case err != nil:
		return translate(err, "reading which installation the database is of")
	}

	return berth.Errorf(berth.KindUnavailable, "this process serves installation %s, and the database at --postgres-url %s: containers are left alone "+
		"until that database is there again; restore it, or correct --postgres-url", installation, what)
}

// BindTemporal notes that a namespace of Temporal keeps the installation's id, as a
// process has just seen.
func (s *Store) BindTemporal(ctx context.Context) error {
	return translate(s.q.BindTemporal(ctx, s.pool), "noting that Temporal is bound")
}

// RenewInstallation makes a copy of a database an installation of its own, with an id of
// its own, and returns that. Errors: conflict while a server or worker uses the database.
func (s *Store) RenewInstallation(ctx context.Context) (id string, err error) {
	id, err = s.q.RenewInstallation(ctx, s.pool)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", berth.Errorf(berth.KindConflict, "a server or worker uses this database: --new-installation is for a copy that none uses yet; give the copy's URL, or stop them")
	}

	return id, translate(err, "giving the installation an id of its own")
}

// SetAlarm stores a problem that only a person can solve, and empties it when
// it is over. A change is an event.
func (s *Store) SetAlarm(ctx context.Context, text string) (changed bool, err error) {
	err = s.inTx(ctx, "setting the alarm", func(tx pgx.Tx) error {
		rows, err := s.q.SetAlarm(ctx, tx, text)
		if err != nil || rows == 0 {
			return err
		}

		changed = true

		return s.notify(ctx, tx, berth.Event{Kind: "installation.alarm", Subject: "installation", Data: text})
	})

	return changed, err
}
