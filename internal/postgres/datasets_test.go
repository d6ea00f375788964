package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// What a host has, what a waiting sweep asks for and what an attempt had are kept.
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

// A worker of an older version registers with this statement, and neither mounts data
// sets and secrets nor stores files.
func TestRegisterHost_ByAnOlderWorker(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()

	told := func() (datasets []string, stores bool) {
		hosts, err := b.store.ListHosts(ctx)
		require.NoError(t, err)
		require.NoError(t, pool.QueryRow(ctx, "SELECT stores_files FROM hosts WHERE id = $1", b.host.ID).Scan(&stores))

		return hosts[0].Datasets, stores
	}

	checkpoints := func() (stores bool) {
		require.NoError(t, pool.QueryRow(ctx, "SELECT stores_checkpoints FROM hosts WHERE id = $1", b.host.ID).Scan(&stores))

		return stores
	}

	keys := func() []string {
		hosts, err := b.store.ListHosts(ctx)
		require.NoError(t, err)

		return hosts[0].SecretKeys
	}

	files := func() int64 {
		hosts, err := b.store.ListHosts(ctx)
		require.NoError(t, err)

		return hosts[0].FilesDiskBytes
	}

	for range 2 {
		b.host.Datasets, b.host.SecretKeys = []string{"flowers"}, []string{"age1a"}
		require.NoError(t, b.store.RegisterHost(ctx, b.host, "same"))
		require.NoError(t, b.store.SetHostStores(ctx, b.host.ID, true))
		require.NoError(t, b.store.SetHostCheckpoints(ctx, b.host.ID, true))
		require.NoError(t, b.store.TouchHost(ctx, b.host.ID, berth.HostFree{FilesBytes: gib, FilesTotal: 2 * gib}, nil))
		require.NoError(t, b.store.RegisterHost(ctx, b.host, "same"))

		datasets, stores := told()
		require.Equal(t, b.host.Datasets, datasets)
		require.Equal(t, b.host.SecretKeys, keys())
		require.True(t, stores, "until the worker says otherwise")
		require.True(t, checkpoints())
		require.EqualValues(t, 2*gib, files())

		_, err := pool.Exec(ctx, `
			INSERT INTO hosts AS h (id, name, boot_id, cpu_milli, memory_bytes, memory_headroom_bytes, memory_free_bytes, max_attempts, version, machine_id, data_dir)
			VALUES ($1, 'a', 'boot', 1000, 1 << 30, 0, 1 << 30, 0, 'same', '', '')
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, removed_at = NULL,
				machine_id = excluded.machine_id, data_dir = excluded.data_dir, last_seen_at = now()`, b.host.ID)
		require.NoError(t, err)

		datasets, stores = told()
		require.Empty(t, datasets)
		require.Empty(t, keys())
		require.False(t, stores)
		require.False(t, checkpoints())
		require.Zero(t, files(), "it does not tell of that disk")
	}
}
