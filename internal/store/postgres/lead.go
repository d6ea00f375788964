package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
)

const (
	leadRetry = time.Second     // between tries to become leader
	leadCheck = 2 * time.Second // that the lock's connection still lives
	// lockIdle is how long a silent owner keeps a lock: longer than two checks,
	// shorter than a starting worker waits.
	lockIdle = 10 * time.Second
)

// Lead calls lead while this process holds the named advisory lock, and tries
// to get the lock otherwise, until ctx ends. The lock belongs to a connection
// of its own: when that is lost, lead's context ends at once and another
// process may lead. It logs that it cannot ask for the lock, and Health says
// why.
func (s *Store) Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	for {
		lock, err := s.claimLock(ctx, name, math.MaxInt64)
		if err != nil {
			return err
		}

		err = whileHeld(ctx, lead, func(ctx context.Context) error {
			holdLock(ctx, lock)

			return errNotLeader
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}

		if err != nil && !errors.Is(err, errNotLeader) {
			return err
		}
	}
}

// Own calls own while no other process holds the named advisory lock. Unlike
// Lead it goes on while the database is unreachable: the owned thing is a host,
// whose trials must outlive an outage, and tokens fence its writes. It ends
// with a conflict when another process has held the lock for all of patience,
// at the start or later.
func (s *Store) Own(ctx context.Context, name string, patience time.Duration, own func(ctx context.Context) error) error {
	lock, err := s.claimLock(ctx, name, patience)
	if err != nil {
		return err
	}

	return whileHeld(ctx, own, func(ctx context.Context) error { return s.keepLock(ctx, lock, name, patience) })
}

// whileHeld calls work and hold at once. When one returns, it ends the other's context,
// waits for it, and returns the error of the first.
func whileHeld(ctx context.Context, work, hold func(ctx context.Context) error) error {
	working, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	holding, stop := context.WithCancel(ctx)
	defer stop()

	done, lost := make(chan error, 1), make(chan error, 1)

	go func() { done <- work(working) }() // joined below
	go func() { lost <- hold(holding) }() // joined below

	select {
	case err := <-done:
		stop()
		<-lost //nolint:errcheck // it was stopped

		return err
	case err := <-lost:
		lose(err)
		<-done //nolint:errcheck // it ends because the lock was lost

		return err
	}
}

// keepLock holds on to the lock, and takes it again when its connection was lost.
// It returns when ctx ends, or with a conflict.
func (s *Store) keepLock(ctx context.Context, lock *pgx.Conn, name string, patience time.Duration) error {
	for {
		holdLock(ctx, lock)

		var err error
		if lock, err = s.claimLock(ctx, name, patience); err != nil {
			return err
		}
	}
}

// claimLock takes the lock. It waits without limit for a silent database, and as
// long as patience for another owner.
func (s *Store) claimLock(ctx context.Context, name string, patience time.Duration) (*pgx.Conn, error) {
	refused := time.Time{} // since when another holds it

	for {
		conn, err := s.lock(ctx, name)
		s.noteTrouble(ctx, name, err)

		switch {
		case err == nil:
			return conn, nil
		case !errors.Is(err, errNotLeader):
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

// lock takes the named lock on a connection of its own. The server ends the
// connection, and with it the lock, after lockIdle without a message: a process
// that is cut off or frozen does not keep it. Errors: errNotLeader when another
// process has the lock.
func (s *Store) lock(ctx context.Context, name string) (*pgx.Conn, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, translate(err, "connecting for the lock "+name)
	}

	conn := pooled.Hijack()

	var got bool
	if _, err = conn.Exec(ctx, "SET idle_session_timeout = "+milliseconds(lockIdle)); err == nil {
		err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", lockName(name)).Scan(&got)
	}

	if err == nil && got {
		return conn, nil
	}

	_ = conn.Close(context.WithoutCancel(ctx))

	if err != nil {
		return nil, translate(err, "taking the lock "+name)
	}

	return nil, errNotLeader
}

// lockName is the text hashed to a lock's number.
func lockName(name string) string { return "lead:" + name }

// isLed reports whether any process holds a named lock (how pg_locks shows a lock
// of 64 bits: PostgreSQL manual, section 54.12).
func (s *Store) isLed(ctx context.Context, name string) (bool, error) {
	var held bool

	err := s.pool.QueryRow(ctx, `SELECT EXISTS (
		SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
			AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended($1, 0))`, lockName(name)).Scan(&held)

	return held, translate(err, "looking who leads")
}

// placerLed reports whether any process places, and if not, why this one does
// not; empty when it never tried or just begins. It asks twice before it
// returns false: a successor needs a moment to take over.
func (s *Store) placerLed(ctx context.Context) (led bool, reason string, err error) {
	for try := 0; ; try++ {
		if led, err = s.isLed(ctx, placerLock); err != nil || led {
			return led, "", err
		}

		if why, found := s.troubles.Load(placerLock); found {
			return false, why.(string), nil //nolint:forcetypeassert // only note stores
		}

		if try > 0 {
			return false, "", nil
		}

		select {
		case <-ctx.Done():
			return false, "", ctx.Err()
		case <-time.After(leadRetry + leadRetry/2):
		}
	}
}

// placerLock is the name of the placer's lock.
const placerLock = "placer"

// noteTrouble takes how a try to get a lock ended. It logs a new reason why the lock
// cannot be asked for, and its end.
func (s *Store) noteTrouble(ctx context.Context, name string, err error) {
	if err == nil || errors.Is(err, errNotLeader) {
		if _, was := s.troubles.LoadAndDelete(name); was {
			s.log.Info("the lock can be asked for again", "lock", name)
		}

		return
	}

	if ctx.Err() == nil {
		if last, _ := s.troubles.Swap(name, err.Error()); last != err.Error() {
			s.log.Warn("cannot ask for a lock; trying again", "lock", name, "error", err)
		}
	}
}

// holdLock returns when the lock's connection is lost or ctx ends, and closes it.
func holdLock(ctx context.Context, conn *pgx.Conn) {
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it may be lost

	ticker := time.NewTicker(leadCheck)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			asking, cancel := context.WithTimeout(ctx, leadCheck)
			err := conn.Ping(asking)

			cancel()

			if err != nil {
				return
			}
		}
	}
}
