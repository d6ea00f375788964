package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// Temporal may be slower than PostgreSQL's limit for an idle transaction, so
// none is open while messages are delivered. Delivered messages are deleted. A relay
// that dies leaves its messages only for as long as its claim lasts.
func TestOutbox_IsDeliveredOutsideOfATransaction(t *testing.T) {
	t.Parallel()

	b := bare(t)
	other := open(t, b.url)
	claim := func(s *postgres.Store, limit int, lasts time.Duration) []berth.OutboxMessage {
		claimed, err := s.ClaimOutbox(t.Context(), limit, lasts)
		require.NoError(t, err)

		return claimed
	}

	b.exec(t, `INSERT INTO outbox (kind, workflow_id, payload) SELECT 'placed', 'w' || n, '{}' FROM generate_series(1, 5) n`)

	claimed := claim(b.store, 4, time.Hour)
	require.Len(t, claimed, 4)

	for i := range claimed[1:] {
		require.Less(t, claimed[i].ID, claimed[i+1].ID)
	}

	require.Zero(t, b.rows(t, "pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"))
	require.Len(t, claim(other, 100, time.Hour), 1, "another relay takes only what is not claimed")

	require.NoError(t, b.store.SettleOutbox(t.Context(), berth.Delivery{
		Delivered: []int64{claimed[0].ID, claimed[1].ID}, Untried: []int64{claimed[2].ID},
		Failed: map[int64]error{claimed[3].ID: errors.New("no such namespace" + strings.Repeat("!", 1000))},
	}))

	again := claim(other, 100, time.Hour)
	require.Len(t, again, 1, "what was not tried is due at once, what failed later")
	require.Equal(t, claimed[2].ID, again[0].ID)
	require.Zero(t, again[0].Tries)

	for range 2 { // when its pause is over, and when the relay that claims it has died
		require.Eventually(t, func() bool {
			late := claim(other, 100, 100*time.Millisecond)

			return len(late) == 1 && late[0].ID == claimed[3].ID && late[0].Tries == 1
		}, 10*time.Second, 20*time.Millisecond)
	}

	health := b.health(t)
	require.Equal(t, 3, health.OutboxWaiting)
	require.Contains(t, health.OutboxReason, "no such namespace")
	require.LessOrEqual(t, len(health.OutboxReason), 500)
}
