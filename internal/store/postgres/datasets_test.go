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

	b.exec(t, `UPDATE sweeps SET spec = spec::jsonb || '{"datasets": [{"name": "flowers", "target": "/data/f", "version": "1"}], "stages": [{"name": "a", "image": "x", "image_digest": "sha256:a"}]}'`)
	require.Equal(t, []string{"flowers@1"}, b.queue(t).Waiting[0].Datasets)
	require.NotEqual(t, "sha256:a", b.queue(t).Waiting[0].Image)
	b.exec(t, `UPDATE placement_requests SET stage = 'a'`)
	require.Equal(t, "sha256:a", b.queue(t).Waiting[0].Image, "a stage may have an image of its own")
	b.exec(t, `UPDATE placement_requests SET stage = 'main'`)

	done := result(r, b.place(t, r).Token, berth.Outcome{Kind: berth.FailureOK, FinishedAt: time.Now()})
	done.Datasets = map[string]string{"flowers": "0123456789abcdef"}
	require.NoError(t, b.store.FinishAttempt(t.Context(), done))
	require.Equal(t, done.Datasets, b.attempt(t, r.AttemptID).Datasets)

	free := berth.HostFree{MemoryBytes: gib, Datasets: []string{"flowers@0123456789abcdef"}}
	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, free, nil))
	require.Equal(t, free.Datasets, b.first(t).Datasets)

	free.Datasets = nil // of a worker whose Docker does not answer
	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, free, nil))
	require.Equal(t, []string{"flowers@0123456789abcdef"}, b.first(t).Datasets)

	b.host.Datasets = nil
	b.register(t)
	require.Empty(t, b.first(t).Datasets)
}
