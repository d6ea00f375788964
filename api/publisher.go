package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthml/berth/internal/control/health"
)

// Outbox is the events that were committed and have no sequence yet.
type Outbox interface {
	Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error
	ListenEvents(ctx context.Context, poll time.Duration, wake func()) error
	PublishEvents(ctx context.Context, limit int) (int, error)
	// NoteRound tells health how a round of the loop ended.
	NoteRound(ctx context.Context, part string, err error)
}

const (
	publishPoll  = time.Second // a notification is only a hint
	publishBatch = 500
)

// Publisher gives committed events their sequence. Ids commit out of order, so
// a reader by id would lose some: one publisher, the leader, numbers committed
// events, and all readers use that number.
type Publisher struct {
	Outbox Outbox
	Log    *slog.Logger
}

// Run publishes while it leads, until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	return p.Outbox.Lead(ctx, "events", func(ctx context.Context) error {
		p.Log.Info("event publisher leads")

		return p.Outbox.ListenEvents(ctx, publishPoll, func() { p.publish(ctx) })
	})
}

func (p *Publisher) publish(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := p.Outbox.PublishEvents(ctx, publishBatch)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("publishing events", "error", err)
		}

		p.Outbox.NoteRound(ctx, health.PartEvents, err)

		if err != nil || n < publishBatch {
			return
		}
	}
}
