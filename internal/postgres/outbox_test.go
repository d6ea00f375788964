package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// Temporal may be slower than PostgreSQL's limit for an idle transaction, so
// none is open while messages are delivered. Delivered messages are deleted.
func TestOutbox_IsDeliveredOutsideOfATransaction(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store, other, pool := open(t, url), open(t, url), openPool(t, url)

	_, err := pool.Exec(t.Context(), `INSERT INTO outbox (kind, workflow_id, payload)
		SELECT 'placed', 'w' || n, '{}' FROM generate_series(1, 5) n`)
	require.NoError(t, err)

	claimed, err := store.ClaimOutbox(t.Context(), 4, time.Hour)
	require.NoError(t, err)
	require.Len(t, claimed, 4)

	for i := range claimed[1:] {
		require.Less(t, claimed[i].ID, claimed[i+1].ID)
	}

	var open int

	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND state LIKE 'idle in transaction%'`).Scan(&open))
	require.Zero(t, open)

	rest, err := other.ClaimOutbox(t.Context(), 100, time.Hour)
	require.NoError(t, err)
	require.Len(t, rest, 1, "another relay takes only what is not claimed")

	require.NoError(t, store.SettleOutbox(t.Context(), berth.Delivery{
		Delivered: []int64{claimed[0].ID, claimed[1].ID}, Untried: []int64{claimed[2].ID},
		Failed: map[int64]error{claimed[3].ID: errors.New("no such namespace" + strings.Repeat("!", 1000))},
	}))

	again, err := other.ClaimOutbox(t.Context(), 100, time.Hour)
	require.NoError(t, err)
	require.Len(t, again, 1, "what was not tried is due at once, what failed later")
	require.Equal(t, claimed[2].ID, again[0].ID)
	require.Zero(t, again[0].Tries)

	require.Eventually(t, func() bool {
		late, err := other.ClaimOutbox(t.Context(), 100, time.Hour)

		return err == nil && len(late) == 1 && late[0].ID == claimed[3].ID && late[0].Tries == 1
	}, 10*time.Second, 20*time.Millisecond)

	health, err := store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, health.OutboxWaiting)
	require.Contains(t, health.OutboxReason, "no such namespace")
	require.LessOrEqual(t, len(health.OutboxReason), 500)
}

// A relay that dies leaves its messages only for as long as its claim lasts.
func TestOutbox_ClaimsEnd(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store, pool := open(t, url), openPool(t, url)

	_, err := pool.Exec(t.Context(), "INSERT INTO outbox (kind, workflow_id, payload) VALUES ('placed', 'w', '{}')")
	require.NoError(t, err)

	claimed, err := store.ClaimOutbox(t.Context(), 1, 100*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, claimed, 1)

	require.Eventually(t, func() bool {
		again, err := store.ClaimOutbox(t.Context(), 1, time.Hour)

		return err == nil && len(again) == 1
	}, 10*time.Second, 20*time.Millisecond)
}
