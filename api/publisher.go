package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/postgres"
)

const (
	publishPoll  = time.Second // a notification is only a hint
	publishBatch = 500
)

// Publisher gives committed events their sequence. Ids commit out of order, so
// a reader by id would lose some: one publisher, the leader, numbers committed
// events, and all readers use that number.
type Publisher struct {
	Store *postgres.Store
	Log   *slog.Logger
}

// Run publishes while it leads, until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	return p.Store.Lead(ctx, "events", func(ctx context.Context) error {
		p.Log.Info("event publisher leads")

		return p.Store.ListenEvents(ctx, publishPoll, func() { p.publish(ctx) })
	})
}

func (p *Publisher) publish(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := p.Store.PublishEvents(ctx, publishBatch)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("publishing events", "error", err)
		}

		p.Store.NoteRound(ctx, health.PartEvents, err)

		if err != nil || n < publishBatch {
			return
		}
	}
}
