package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The ledger keeps a host's data sets, a waiting sweep's, and an attempt's.
func TestDatasets(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.host.Datasets = []string{"birds", "flowers"}
	b.register(t)
	require.Equal(t, b.host.Datasets, b.first(t).Datasets)

	b.exec(t, `UPDATE sweeps SET spec = spec::jsonb || '{"datasets": [{"name": "flowers", "target": "/data/f"}]}'`)

	r := b.request(t, gib)
	require.Equal(t, []string{"flowers"}, b.queue(t).Waiting[0].Datasets)

	done := result(r, b.place(t, r).Token, berth.Outcome{Kind: berth.FailureOK, FinishedAt: time.Now()})
	done.Datasets = map[string]string{"flowers": "0123456789abcdef"}
	require.NoError(t, b.store.FinishAttempt(t.Context(), done))
	require.Equal(t, done.Datasets, b.attempt(t, r.AttemptID).Datasets)

	b.host.Datasets = nil
	b.register(t)
	require.Empty(t, b.first(t).Datasets)
}
