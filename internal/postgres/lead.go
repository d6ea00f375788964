package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
)

const (
	leadRetry = time.Second     // between tries to become leader
	leadCheck = 2 * time.Second // that the lock's connection still lives
	// lockIdle is how long the server hears nothing before it takes a lock away:
	// longer than two checks, shorter than a starting worker waits.
	lockIdle = 10 * time.Second
)

// Lead calls lead while this process holds the named advisory lock, and tries
// to get the lock otherwise, until ctx ends. The lock belongs to a connection
// of its own: when that is lost, lead's context ends at once and another
// process may lead.
func (s *Store) Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		if err := s.leadOnce(ctx, name, lead); err != nil && ctx.Err() == nil && !errors.Is(err, errNotLeader) {
			return err
		}

		select {
		case <-ctx.Done():
		case <-time.After(leadRetry):
		}
	}

	return ctx.Err()
}

// Own calls own while no other process holds the named advisory lock. Unlike
// Lead it goes on while the database cannot be asked: what is owned is a
// machine, whose trials must outlive an outage, and writes are fenced by
// tokens. It ends with a conflict when another process has held the lock for
// the whole of patience, at the start or later.
func (s *Store) Own(ctx context.Context, name string, patience time.Duration, own func(ctx context.Context) error) error {
	lock, err := s.claim(ctx, name, patience)
	if err != nil {
		return err
	}

	owning, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	done := make(chan error, 1)

	go func() { done <- own(owning) }() // joined below

	kept := make(chan error, 1)
	keeping, stop := context.WithCancel(ctx)

	go func() { kept <- s.keep(keeping, lock, name, patience) }() // joined below

	select {
	case err = <-done:
		stop()
		<-kept //nolint:errcheck // it was stopped
	case err = <-kept:
		stop()
		lose(err)
		<-done //nolint:errcheck // it ends because another owns
	}

	return err
}

// keep holds on to the lock, and takes it again when its connection was lost.
// It returns when ctx ends, or with a conflict.
func (s *Store) keep(ctx context.Context, lock *pgx.Conn, name string, patience time.Duration) error {
	for {
		hold(ctx, lock)

		_ = lock.Close(context.WithoutCancel(ctx))

		if ctx.Err() != nil {
			return ctx.Err()
		}

		var err error
		if lock, err = s.claim(ctx, name, patience); err != nil {
			return err
		}
	}
}

// claim takes the lock. It waits for a database that does not answer for as
// long as that takes, and for another owner as long as patience.
func (s *Store) claim(ctx context.Context, name string, patience time.Duration) (*pgx.Conn, error) {
	refused := time.Time{} // since when another holds it

	for {
		conn, held, err := s.lock(ctx, name)

		switch {
		case err == nil:
			return conn, nil
		case !held:
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) > patience:
			return nil, berth.Errorf(berth.KindConflict, "%s has another owner: stop that process first", name)
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(leadRetry):
		}
	}
}

var errNotLeader = errors.New("another process leads, or the connection was lost")

func (s *Store) leadOnce(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	conn, _, err := s.lock(ctx, name)
	if err != nil {
		return err
	}

	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	leading, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	done := make(chan error, 1)

	go func() { done <- lead(leading) }() // joined below on every path

	holding, stop := context.WithCancel(ctx)
	lost := make(chan struct{})

	go func() { // joined below on every path
		defer close(lost)
		hold(holding, conn)
	}()

	select {
	case err = <-done:
		stop()
		<-lost
	case <-lost:
		stop()
		lose(errNotLeader)
		<-done //nolint:errcheck // it ends because the lead was lost

		err = errNotLeader
	}

	return err
}

// lock takes the named lock on a connection of its own. held says that another
// process has it. The server ends the connection, and with it the lock, when
// it hears nothing for lockIdle: whoever is cut off or frozen does not keep it.
func (s *Store) lock(ctx context.Context, name string) (conn *pgx.Conn, held bool, err error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, false, errNotLeader
	}

	conn = pooled.Hijack()

	var got bool
	if _, err = conn.Exec(ctx, "SET idle_session_timeout = "+milliseconds(lockIdle)); err == nil {
		err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", "lead:"+name).Scan(&got)
	}

	if err != nil || !got {
		_ = conn.Close(context.WithoutCancel(ctx))

		return nil, err == nil, errNotLeader
	}

	return conn, false, nil
}

// hold returns when the lock's connection is lost or ctx ends.
func hold(ctx context.Context, conn *pgx.Conn) {
	ticker := time.NewTicker(leadCheck)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !alive(ctx, conn) {
				return
			}
		}
	}
}

func alive(ctx context.Context, conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, leadCheck)
	defer cancel()

	return conn.Ping(ctx) == nil
}
