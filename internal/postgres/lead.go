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

// Own is Lead for what must not have two owners: it gives up with a conflict
// when another process has held the lock for the whole of patience.
func (s *Store) Own(ctx context.Context, name string, patience time.Duration, own func(ctx context.Context) error) error {
	deadline := time.Now().Add(patience)

	for ctx.Err() == nil {
		err := s.leadOnce(ctx, name, own)
		if !errors.Is(err, errNotLeader) {
			return err
		}

		if time.Now().After(deadline) {
			return berth.Errorf(berth.KindConflict, "%s has another owner: stop that process first", name)
		}

		select {
		case <-ctx.Done():
		case <-time.After(leadRetry):
		}
	}

	return ctx.Err()
}

var errNotLeader = errors.New("another process leads, or the connection was lost")

func (s *Store) leadOnce(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return errNotLeader
	}

	conn := pooled.Hijack()
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	var got bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", "lead:"+name).Scan(&got); err != nil || !got {
		return errNotLeader
	}

	leading, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	done := make(chan error, 1)

	go func() { done <- lead(leading) }() // joined below on every path

	ticker := time.NewTicker(leadCheck)
	defer ticker.Stop()

	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if !alive(ctx, conn) {
				lose(errNotLeader)
				<-done //nolint:errcheck // it ends because the lead was lost

				return errNotLeader
			}
		}
	}
}

func alive(ctx context.Context, conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, leadCheck)
	defer cancel()

	return conn.Ping(ctx) == nil
}
