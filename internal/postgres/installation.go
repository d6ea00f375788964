package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
)

// codeInsufficientPrivilege: some hosted databases hide the cluster's identity.
const codeInsufficientPrivilege = "42501"

// Installation returns which installation the database is of.
func (s *Store) Installation(ctx context.Context) (berth.Installation, error) {
	row, err := s.q.GetInstallation(ctx, s.pool)
	if err != nil {
		return berth.Installation{}, translate(err, "reading the installation")
	}

	database, err := s.identity(ctx)

	return berth.Installation{ID: row.ID, Database: database, BoundAt: row.TemporalBoundAt, Alarm: row.Alarm, Databases: row.Databases}, err
}

// identityQuery names the cluster and the database in it. A copy that was restored
// from a dump has another one; a standby that took over has the same, and so has a
// copy of the cluster's files, such as a snapshot.
const identityQuery = `SELECT c.system_identifier || '/' || d.oid FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()`

// identity asks identityQuery; empty = PostgreSQL hides it.
func (s *Store) identity(ctx context.Context) (name string, err error) {
	err = s.pool.QueryRow(ctx, identityQuery).Scan(&name)

	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == codeInsufficientPrivilege {
		return "", nil
	}

	return name, translate(err, "reading the identity of the database")
}

// BindTemporal notes that a namespace of Temporal keeps the installation's id, as a
// process has just seen.
func (s *Store) BindTemporal(ctx context.Context) error {
	return translate(s.q.BindTemporal(ctx, s.pool), "noting that Temporal is bound")
}

// OwnDatabase notes that a database, as Installation names it, is the installation's own, and
// that it replaces one, if any, beside those that were noted before. It notes nothing
// where PostgreSQL hides the name.
func (s *Store) OwnDatabase(ctx context.Context, database, replaced string) error {
	if database == "" {
		return nil
	}

	names := []string{database}
	if replaced != "" && replaced != database {
		names = append(names, replaced)
	}

	return translate(s.q.OwnDatabase(ctx, s.pool, names), "noting which database is the installation's own")
}

// SetAlarm stores what only a person can decide, and empties it when it is
// over. A change is an event.
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
