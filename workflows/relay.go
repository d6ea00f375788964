package workflows

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/berthml/berth"
)

// Outbox is what Temporal still has to be told.
type Outbox interface {
	DeliverOutbox(ctx context.Context, limit int, deliver func(ctx context.Context, messages []berth.OutboxMessage) (delivered []int64)) (int, error)
	ListenOutbox(ctx context.Context, poll time.Duration, wake func()) error
}

const (
	relayBatch = 100
	relayPoll  = time.Second // a notification is only a hint
)

// Relay delivers the outbox to Temporal. Several may run: a message is locked
// while it is being delivered.
type Relay struct {
	Outbox Outbox
	Client *Client
	Log    *slog.Logger
}

// Run delivers until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	return r.Outbox.ListenOutbox(ctx, relayPoll, func() {
		for ctx.Err() == nil {
			n, err := r.Outbox.DeliverOutbox(ctx, relayBatch, r.deliver)
			if err != nil && ctx.Err() == nil {
				r.Log.Warn("delivering the outbox", "error", err)
			}

			if err != nil || n < relayBatch {
				return
			}
		}
	})
}

func (r *Relay) deliver(ctx context.Context, messages []berth.OutboxMessage) []int64 {
	delivered := make([]int64, 0, len(messages))

	for _, m := range messages {
		if err := r.send(ctx, m); err != nil {
			r.Log.Warn("telling Temporal", "kind", m.Kind, "workflow", m.WorkflowID, "tries", m.Tries, "error", err)

			continue
		}

		delivered = append(delivered, m.ID)
	}

	return delivered
}

func (r *Relay) send(ctx context.Context, m berth.OutboxMessage) error {
	var payload struct {
		SweepID   string `json:"sweep_id"`
		AttemptID string `json:"attempt_id"`
	}
	if err := json.Unmarshal(m.Payload, &payload); err != nil {
		return berth.Errorf(berth.KindInternal, "reading outbox message %d: %w", m.ID, err)
	}

	switch m.Kind {
	case berth.OutboxStartSweep:
		return r.Client.StartSweep(ctx, payload.SweepID)
	case berth.OutboxPlaced:
		return r.Client.SignalPlaced(ctx, m.WorkflowID, payload.AttemptID)
	default:
		return berth.Errorf(berth.KindInternal, "outbox message %d has the unknown kind %q", m.ID, m.Kind)
	}
}
