package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// outboxReason is how many bytes of an error are kept beside its message.
const outboxReason = 500

// ClaimOutbox takes up to limit due messages, oldest first, until the claim
// ends. No other relay takes them until then. It leaves no transaction open: a
// call to Temporal may take longer than PostgreSQL's limit for an idle
// transaction. SettleOutbox stores the results; messages without a result are
// due again when the claim ends.
func (s *Store) ClaimOutbox(ctx context.Context, limit int, claim time.Duration) ([]berth.OutboxMessage, error) {
	rows, err := s.q.ClaimOutbox(ctx, s.pool, claim, limit)

	slices.SortFunc(rows, func(a, b dbsqlc.ClaimOutboxRow) int { return cmp.Compare(a.ID, b.ID) })

	return collect(rows, err, "claiming the outbox", func(row dbsqlc.ClaimOutboxRow) berth.OutboxMessage { return berth.OutboxMessage(row) })
}

// SettleOutbox stores the results of claimed messages: delivered ones are
// deleted, failed ones keep the reason and are tried again after a back-off
// that grows to a minute, untried ones are due at once.
func (s *Store) SettleOutbox(ctx context.Context, d berth.Delivery) error {
	settle := &dbsqlc.SettleOutboxParams{Delivered: d.Delivered, Untried: d.Untried}

	for id, failure := range d.Failed {
		text := failure.Error()
		settle.Failed, settle.Reasons = append(settle.Failed, id), append(settle.Reasons, strings.ToValidUTF8(text[:min(len(text), outboxReason)], ""))
	}

	return translate(s.q.SettleOutbox(ctx, s.pool, settle), "settling the outbox")
}

// outboxBacklog counts the messages that wait for Temporal.
func (s *Store) outboxBacklog(ctx context.Context) (dbsqlc.CountOutboxRow, error) {
	row, err := s.q.CountOutbox(ctx, s.pool)

	return row, translate(err, "counting the outbox")
}
