package workflows

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

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

	// relayAtOnce is how many calls to Temporal are under way; each takes a few milliseconds.
	relayAtOnce = 16
)

// Relay delivers the outbox to Temporal. Several may run: a message is locked
// while it is being delivered.
type Relay struct {
	Outbox   Outbox
	Identity *Identity
	Client   *Client
	Log      *slog.Logger
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
	if !r.Identity.Bound() {
		return nil // a workflow that is not there now may come back with Temporal's store: what it is told must not be lost
	}

	sent := make([]bool, len(messages))

	var group errgroup.Group

	group.SetLimit(relayAtOnce)

	for i, m := range messages {
		group.Go(func() error {
			if err := r.send(ctx, m); err != nil {
				r.Log.Warn("telling Temporal", "kind", m.Kind, "workflow", m.WorkflowID, "tries", m.Tries, "error", err)
			} else {
				sent[i] = true
			}

			return nil
		})
	}

	_ = group.Wait() // none returns an error

	delivered := make([]int64, 0, len(messages))

	for i, m := range messages {
		if sent[i] {
			delivered = append(delivered, m.ID)
		}
	}

	return delivered
}

func (r *Relay) send(ctx context.Context, m berth.OutboxMessage) error {
	var payload struct {
		berth.TrialEnd

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
		return r.Client.signal(ctx, m.WorkflowID, SignalPlaced, Placed{AttemptID: payload.AttemptID})
	case berth.OutboxTrialFinished:
		return r.Client.signal(ctx, m.WorkflowID, SignalTrialFinished, payload.TrialEnd)
	default:
		return berth.Errorf(berth.KindInternal, "outbox message %d has the unknown kind %q", m.ID, m.Kind)
	}
}
