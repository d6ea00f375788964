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
	trouble := trouble{store: s, name: name}
	defer trouble.end()

	for ctx.Err() == nil {
		err := s.leadOnce(ctx, name, lead, trouble.end)

		var unlockable *lockError

		switch {
		case ctx.Err() != nil:
		case errors.As(err, &unlockable):
			trouble.noteError(unlockable)
		case errors.Is(err, errNotLeader):
			trouble.end()
		case err != nil:
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
// Lead it goes on while the database is unreachable: the owned thing is a host,
// whose trials must outlive an outage, and tokens fence its writes. It ends
// with a conflict when another process has held the lock for all of patience,
// at the start or later.
func (s *Store) Own(ctx context.Context, name string, patience time.Duration, own func(ctx context.Context) error) error {
	lock, err := s.claimLock(ctx, name, patience)
	if err != nil {
		return err
	}

	owning, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	done := make(chan error, 1)

	go func() { done <- own(owning) }() // joined below

	kept := make(chan error, 1)
	keeping, stop := context.WithCancel(ctx)

	go func() { kept <- s.keepLock(keeping, lock, name, patience) }() // joined below

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

// keepLock holds on to the lock, and takes it again when its connection was lost.
// It returns when ctx ends, or with a conflict.
func (s *Store) keepLock(ctx context.Context, lock *pgx.Conn, name string, patience time.Duration) error {
	for {
		holdLock(ctx, lock)

		_ = lock.Close(context.WithoutCancel(ctx))

		if ctx.Err() != nil {
			return ctx.Err()
		}

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
	trouble := trouble{store: s, name: name}

	defer trouble.end()

	for {
		conn, err := s.lock(ctx, name)

		var unlockable *lockError

		switch {
		case err == nil:
			return conn, nil
		case errors.As(err, &unlockable):
			refused = time.Time{}

			if ctx.Err() == nil {
				trouble.noteError(unlockable)
			}
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

// lockError is that a lock could not be asked for.
type lockError struct{ err error }

func (e *lockError) Error() string { return e.err.Error() }

func (e *lockError) Unwrap() error { return e.err }

// leadOnce leads if no other process does. It calls got once it has the lock.
func (s *Store) leadOnce(ctx context.Context, name string, lead func(ctx context.Context) error, got func()) error {
	conn, err := s.lock(ctx, name)
	if err != nil {
		return err
	}

	got()

	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	leading, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	done := make(chan error, 1)

	go func() { done <- lead(leading) }() // joined below on every path

	holding, stop := context.WithCancel(ctx)
	lost := make(chan struct{})

	go func() { // joined below on every path
		defer close(lost)
		holdLock(holding, conn)
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

// lock takes the named lock on a connection of its own. The server ends the
// connection, and with it the lock, after lockIdle without a message: a process
// that is cut off or frozen does not keep it. Errors: errNotLeader when another
// process has the lock, lockError when it cannot be asked for.
func (s *Store) lock(ctx context.Context, name string) (*pgx.Conn, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, &lockError{translate(err, "connecting for the lock "+name)}
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
		return nil, &lockError{translate(err, "taking the lock "+name)}
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

// trouble is a series of failures to ask for a lock. It is logged after 1, 2,
// 4, 8 … failures, and then at least once a minute.
type trouble struct {
	store  *Store
	name   string
	times  int
	due    int       // the count at which it is logged next
	logged time.Time // last
}

// troubleLogged is the longest time between two lines about one trouble.
const troubleLogged = time.Minute

func (t *trouble) noteError(err error) {
	t.times++
	t.store.troubles.Store(t.name, err.Error())

	if t.times > t.due || time.Since(t.logged) > troubleLogged {
		t.due, t.logged = 2*t.times-1, time.Now()
		t.store.log.Warn("cannot ask for a lock; trying again", "lock", t.name, "tries", t.times, "error", err)
	}
}

func (t *trouble) end() {
	if t.times > 0 {
		t.store.log.Info("the lock can be asked for again", "lock", t.name, "tries", t.times)
	}

	t.times, t.due = 0, 0
	t.store.troubles.Delete(t.name)
}

// holdLock returns when the lock's connection is lost or ctx ends.
func holdLock(ctx context.Context, conn *pgx.Conn) {
	ticker := time.NewTicker(leadCheck)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !isAlive(ctx, conn) {
				return
			}
		}
	}
}

func isAlive(ctx context.Context, conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, leadCheck)
	defer cancel()

	return conn.Ping(ctx) == nil
}
