package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/workflows"
)

// Messages is the outbox of messages for Temporal.
type Messages interface {
	ClaimOutbox(ctx context.Context, limit int, claim time.Duration) ([]berth.OutboxMessage, error)
	SettleOutbox(ctx context.Context, d berth.Delivery) error
	ListenOutbox(ctx context.Context, poll time.Duration, wake func()) error
	// NoteRound tells health how a round of the loop ended.
	NoteRound(ctx context.Context, part string, err error)
}

const (
	relayBatch = 100
	relayPoll  = time.Second // a notification is only a hint

	// relayAtOnce is how many calls to Temporal are under way; each takes a few milliseconds.
	relayAtOnce = 16

	// A claim outlasts the tries of its batch and the settling, so that no other
	// relay delivers the same messages in that time: a relay that died leaves
	// its messages for that long.
	relayClaim  = 30 * time.Second
	relayTime   = 20 * time.Second // of a batch; messages not begun by then are given back
	relayTry    = 5 * time.Second  // of one message
	relaySettle = 5 * time.Second  // for the database, also while stopping
)

// Relay delivers the outbox to Temporal. Several may run: each claims its
// messages.
type Relay struct {
	Messages Messages
	Bound    func() bool // whether the namespace is the installation's now, see Identity
	Client   *Client
	Log      *slog.Logger
}

// Run delivers until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	return r.Messages.ListenOutbox(ctx, relayPoll, func() {
		for ctx.Err() == nil {
			n, err := r.round(ctx)
			if err != nil && ctx.Err() == nil {
				r.Log.Warn("delivering the outbox", "error", err)
			}

			r.Messages.NoteRound(ctx, health.PartOutbox, err)

			if err != nil || n < relayBatch {
				return
			}
		}
	})
}

// round delivers one batch and returns its number of messages: none while
// Temporal's store is lost or not ours, as a missing workflow may come back
// with the store, and must not lose its messages.
func (r *Relay) round(ctx context.Context) (int, error) {
	if !r.Bound() {
		return 0, nil
	}

	messages, err := r.Messages.ClaimOutbox(ctx, relayBatch, relayClaim)
	if err != nil || len(messages) == 0 {
		return 0, err
	}

	delivery := r.deliver(ctx, messages)

	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), relaySettle)
	defer cancel()

	return len(messages), r.Messages.SettleOutbox(settling, delivery)
}

// deliver tries each message once. One that fails or hangs is no other's
// trouble.
func (r *Relay) deliver(ctx context.Context, messages []berth.OutboxMessage) berth.Delivery {
	batch, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel()

	results := make([]error, len(messages))

	var group errgroup.Group

	group.SetLimit(relayAtOnce)

	for i, m := range messages {
		group.Go(func() error {
			results[i] = r.try(batch, m)

			return nil
		})
	}

	_ = group.Wait() // none returns an error

	delivery := berth.Delivery{Failed: make(map[int64]error)}

	for i, m := range messages {
		switch err := results[i]; {
		case err == nil:
			delivery.Delivered = append(delivery.Delivered, m.ID)
		case errors.Is(err, errUntried), ctx.Err() != nil: // we are stopping: it is not the message's fault
			delivery.Untried = append(delivery.Untried, m.ID)
		default:
			delivery.Failed[m.ID] = err
			r.Log.Warn("telling Temporal", "kind", m.Kind, "workflow", m.WorkflowID, "tries", m.Tries, "error", err)
		}
	}

	return delivery
}

// errUntried is the result of a message that was not begun in its batch's time.
var errUntried = errors.New("not tried")

func (r *Relay) try(batch context.Context, m berth.OutboxMessage) error {
	if batch.Err() != nil {
		return errUntried
	}

	ctx, cancel := context.WithTimeout(batch, relayTry)
	defer cancel()

	return r.send(ctx, m)
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
		return r.Client.signal(ctx, m.WorkflowID, workflows.SignalPlaced, workflows.Placed{AttemptID: payload.AttemptID})
	case berth.OutboxTrialFinished:
		return r.Client.signal(ctx, m.WorkflowID, workflows.SignalTrialFinished, payload.TrialEnd)
	default:
		return berth.Errorf(berth.KindInternal, "outbox message %d has the unknown kind %q", m.ID, m.Kind)
	}
}
