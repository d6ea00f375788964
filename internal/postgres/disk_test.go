package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/pgtest"
)

// How fast a disk fills is known after a day, and said before the disk is full.
func TestTouchHost_MeasuresHowFastTheDiskFills(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	url := pgtest.URL(t)
	r := &retained{bundle: setupOn(t, url), url: url}

	touch := func(free int64) berth.Host {
		require.NoError(t, r.store.TouchHost(ctx, r.host.ID, berth.HostFree{
			MemoryBytes: gib, DiskBytes: free * gib, DiskTotal: 1000 * gib, OutputBytes: 7 * gib,
		}, nil))

		hosts, err := r.store.ListHosts(ctx)
		require.NoError(t, err)

		return hosts[0]
	}
	later := func(d time.Duration) {
		r.exec(t, "UPDATE hosts SET disk_mark_at = disk_mark_at - $1::interval, disk_day_at = disk_day_at - $1::interval", d)
	}

	require.NoError(t, r.store.TouchHost(ctx, r.host.ID, berth.HostFree{MemoryBytes: gib, DiskBytes: 800 * gib}, nil))

	host := touch(800)
	require.Equal(t, []int64{1000 * gib, 7 * gib}, []int64{host.DiskBytes, host.OutputBytes})
	require.Zero(t, host.DiskGrowthBytes)

	later(12 * time.Hour)
	require.Zero(t, touch(500).DiskGrowthBytes, "half a day says little")

	later(13 * time.Hour)
	require.InEpsilon(t, 350*gib*24/25, touch(450).DiskGrowthBytes, 0.01, "since the mark of 25 hours before")

	later(23 * time.Hour)
	host = touch(400)
	require.InEpsilon(t, 400*gib/2, host.DiskGrowthBytes, 0.01)
	require.Contains(t, health.DiskOf(&host).Warning(), "full in about 3 days; files of attempts take 7,168 MiB")

	later(25 * time.Hour)
	touch(420)
	require.Negative(t, touch(460).DiskGrowthBytes, "files were removed")

	later(25 * time.Hour)
	require.NoError(t, r.store.TouchHost(ctx, r.host.ID, berth.HostFree{
		MemoryBytes: gib, DiskBytes: 10 * gib, DiskTotal: 1020 * gib,
	}, nil))

	hosts, err := r.store.ListHosts(ctx)
	require.NoError(t, err)
	require.Zero(t, hosts[0].DiskGrowthBytes, "another disk is the fullest now")

	health, err := r.store.Health(ctx)
	require.NoError(t, err)
	require.Len(t, health.Disks, 1)
	require.Positive(t, health.Database.Bytes)
	require.Positive(t, health.Database.LogBytes)
	require.Positive(t, health.Database.MetricBytes)
	require.DirExists(t, health.Database.Dir, "this server is on this machine")
}
