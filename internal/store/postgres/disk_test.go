package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
)

// How fast a disk fills is known after a day, and said before the disk is full.
func TestTouchHost_MeasuresHowFastTheDiskFills(t *testing.T) {
	t.Parallel()

	b := setup(t)
	touch := func(free, total int64) berth.Host {
		b.touch(t, berth.HostFree{MemoryBytes: gib, DiskBytes: free * gib, DiskTotal: total * gib, OutputBytes: 7 * gib})

		return b.first(t)
	}
	later := func(d time.Duration) {
		b.exec(t, "UPDATE hosts SET disk_mark_at = disk_mark_at - $1::interval, disk_day_at = disk_day_at - $1::interval", d)
	}

	b.touch(t, berth.HostFree{MemoryBytes: gib, DiskBytes: 800 * gib})

	host := touch(800, 1000)
	require.Equal(t, []int64{1000 * gib, 7 * gib, 0}, []int64{host.DiskBytes, host.OutputBytes, host.DiskGrowthBytes})

	later(12 * time.Hour)
	require.Zero(t, touch(500, 1000).DiskGrowthBytes, "half a day says little")

	later(13 * time.Hour)
	require.InEpsilon(t, 350*gib*24/25, touch(450, 1000).DiskGrowthBytes, 0.01, "since the mark of 25 hours before")

	later(23 * time.Hour)
	host = touch(400, 1000)
	require.InEpsilon(t, 400*gib/2, host.DiskGrowthBytes, 0.01)
	require.Contains(t, health.DiskOf(&host).Warning(), "full in about 3 days; files of attempts take 7,168 MiB")

	later(25 * time.Hour)
	touch(420, 1000)
	require.Negative(t, touch(460, 1000).DiskGrowthBytes, "files were removed")

	later(25 * time.Hour)
	require.Zero(t, touch(10, 1020).DiskGrowthBytes, "another disk is the fullest now")

	health := b.health(t)
	require.Len(t, health.Disks, 1)
	require.Positive(t, health.Database.LogBytes)
	require.DirExists(t, health.Database.Dir, "this server is on this machine")
}
