package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// Channels of LISTEN. A notification is only a hint: listeners poll as well.
const (
	channelEvents = "berth_events"
	channelPlacer = "berth_placer"
	channelOutbox = "berth_outbox"

	channelPublished = "berth_published"
)

// drainTime is how long notifications are gathered after the first: long
// against reading one from a socket, short against a round of the placer.
const drainTime = 2 * time.Millisecond

// notify writes an event and wakes the listeners, once the transaction commits.
// It is one round trip.
func (s *Store) notify(ctx context.Context, tx pgx.Tx, e berth.Event, channels ...string) error {
	channels = append(channels, channelEvents)

	return s.q.Announce(ctx, tx, &dbsqlc.AnnounceParams{
		Kind: e.Kind, SweepID: refOrNil(e.SweepID), Subject: e.Subject, Data: encode(e.Data), Channels: channels,
	})
}

func wake(ctx context.Context, db dbsqlc.DBTX, channel string) error {
	_, err := db.Exec(ctx, "SELECT pg_notify($1, '')", channel)

	return err
}

// PublishEvents stamps committed events with their sequence and wakes the
// readers. Only the one publisher may call it.
func (s *Store) PublishEvents(ctx context.Context, limit int) (int, error) {
	stamped, err := s.q.StampEvents(ctx, s.pool, limit)
	if err != nil || len(stamped) == 0 {
		return 0, translate(err, "publishing events")
	}

	return len(stamped), translate(wake(ctx, s.pool, channelPublished), "announcing events")
}

// BeginHistory forgets the published events of a restored database and starts sequences
// that the original never gave. A reader that comes back with a sequence of the
// original always learns that the following events are gone.
func (s *Store) BeginHistory(ctx context.Context) error {
	return s.inTx(ctx, "beginning a history of events", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil { // a day's events may be many
			return err
		}

		if err := s.q.BeginHistory(ctx, tx); err != nil {
			return err
		}

		return wake(ctx, tx, channelPublished)
	})
}

// ListEvents returns published events of these sweeps after a sequence, oldest
// first. No sweeps means all events.
func (s *Store) ListEvents(ctx context.Context, after int64, sweepIDs []string, limit int) ([]berth.Event, error) {
	rows, err := s.q.ListEvents(ctx, s.pool, &dbsqlc.ListEventsParams{
		AfterSequence: after, SweepIDs: append([]string{}, sweepIDs...), MaxRows: limit,
	})

	return collect(rows, err, "listing events", func(row dbsqlc.ListEventsRow) berth.Event {
		return berth.Event{
			Sequence: row.Sequence, Kind: row.Kind, SweepID: deref(row.SweepID), Subject: row.Subject,
			Data: row.Data, CreatedAt: row.CreatedAt, TrialNumber: row.TrialNumber,
		}
	})
}

// EventRange returns the first and last published sequence that is kept.
func (s *Store) EventRange(ctx context.Context) (first, last int64, err error) {
	if first, err = s.q.FirstEventSequence(ctx, s.pool); err != nil {
		return 0, 0, translate(err, "reading events")
	}

	last, err = s.q.LastEventSequence(ctx, s.pool)

	return first, last, translate(err, "reading events")
}

// Listen calls wake after each announcement on one of the channels, and at
// least once each poll, until ctx ends. It replaces a lost connection and keeps
// polling until then.
func (s *Store) Listen(ctx context.Context, poll time.Duration, wake func(), channels ...string) error {
	for ctx.Err() == nil {
		if err := s.listenOnce(ctx, poll, wake, channels); err != nil && ctx.Err() == nil {
			wake()

			select {
			case <-ctx.Done():
			case <-time.After(poll):
			}
		}
	}

	return ctx.Err()
}

func (s *Store) listenOnce(ctx context.Context, poll time.Duration, wake func(), channels []string) error {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return translate(err, "listening")
	}

	conn := pooled.Hijack() // a listening connection must not go back to the pool
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	for _, channel := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return translate(err, "listening")
		}
	}

	for {
		wake()

		waitCtx, cancel := context.WithTimeout(ctx, poll)
		_, err := conn.WaitForNotification(waitCtx)
		polled := waitCtx.Err() != nil // before cancel, which would make it so

		cancel()

		if err != nil && (ctx.Err() != nil || !polled) {
			return translate(err, "listening")
		}

		if err == nil {
			drain(ctx, conn)
		}
	}
}

// drain takes in the notifications that have come already, so that many of them
// wake once. An error shows at the next wait.
func drain(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()

	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return
		}
	}
}

// ListenPlacer wakes when something waits or became free.
func (s *Store) ListenPlacer(ctx context.Context, poll time.Duration, wake func()) error {
	return s.Listen(ctx, poll, wake, channelPlacer)
}

// ListenOutbox wakes when a message was put into the outbox.
func (s *Store) ListenOutbox(ctx context.Context, poll time.Duration, wake func()) error {
	return s.Listen(ctx, poll, wake, channelOutbox)
}

// ListenEvents wakes when an event was written.
func (s *Store) ListenEvents(ctx context.Context, poll time.Duration, wake func()) error {
	return s.Listen(ctx, poll, wake, channelEvents)
}

// ListenPublished wakes when events got their sequence.
func (s *Store) ListenPublished(ctx context.Context, poll time.Duration, wake func()) error {
	return s.Listen(ctx, poll, wake, channelPublished)
}
