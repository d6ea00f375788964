package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
)

// Readers follow the sequence, so within a batch it must not turn around what
// became of one thing.
func TestPublishEvents_KeepsTheOrder(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool := openPool(t, url)
	b := setupOn(t, url)

	_, err := pool.Exec(t.Context(), `INSERT INTO events (kind, sweep_id, subject, data)
		SELECT 'trial.state', $1, 'x', to_jsonb(n) FROM generate_series(1, 25) n`, b.sweep)
	require.NoError(t, err)

	for {
		n, err := b.store.PublishEvents(t.Context(), 10)
		require.NoError(t, err)

		if n < 10 {
			break
		}
	}

	events, err := b.store.ListEvents(t.Context(), 0, b.sweep, 100)
	require.NoError(t, err)

	got := make([]string, 0, 25)
	for _, e := range events {
		if e.Subject == "x" {
			got = append(got, fmt.Sprintf("%s", e.Data))
		}
	}

	require.Len(t, got, 25)

	for i, data := range got {
		require.Equal(t, fmt.Sprint(i+1), data)
	}
}
