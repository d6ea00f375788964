package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// The ledger keeps a host's data sets, a waiting sweep's, and an attempt's.
func TestDatasets(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()

	b.host.Datasets = []string{"birds", "flowers"}
	require.NoError(t, b.store.RegisterHost(ctx, b.host, "test"))

	hosts, err := b.store.ListHosts(ctx)
	require.NoError(t, err)
	require.Equal(t, b.host.Datasets, hosts[0].Datasets)

	_, err = pool.Exec(ctx, `UPDATE sweeps SET spec = spec::jsonb || '{"datasets": [{"name": "flowers", "target": "/data/f"}]}'`)
	require.NoError(t, err)

	r := b.request(t, gib)
	queue, err := b.store.Queue(ctx, 10)
	require.NoError(t, err)
	require.Len(t, queue.Waiting, 1)
	require.Equal(t, []string{"flowers"}, queue.Waiting[0].Datasets)

	done := result(r, b.place(t, r).Token, berth.Outcome{Kind: berth.FailureOK, FinishedAt: time.Now()})
	done.Datasets = map[string]string{"flowers": "0123456789abcdef"}
	require.NoError(t, b.store.FinishAttempt(ctx, done))

	attempt, err := b.store.GetAttempt(ctx, r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, done.Datasets, attempt.Datasets)

	b.host.Datasets = nil
	require.NoError(t, b.store.RegisterHost(ctx, b.host, "test"))

	hosts, err = b.store.ListHosts(ctx)
	require.NoError(t, err)
	require.Empty(t, hosts[0].Datasets)
}
