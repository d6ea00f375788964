package health_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/control/health"
)

func TestDisk_WarnsLongBeforeItIsFull(t *testing.T) {
	t.Parallel()

	const gib = 1 << 30

	for name, tt := range map[string]struct {
		disk health.Disk
		says string
	}{
		"nothing is known":             {health.Disk{Of: "host a", FreeBytes: gib}, ""},
		"room":                         {health.Disk{Of: "host a", TotalBytes: 102 * gib, FreeBytes: 18 * gib, HeadroomBytes: 2 * gib}, ""},
		"85 % of what may be filled":   {health.Disk{Of: "host a", TotalBytes: 102 * gib, FreeBytes: 17 * gib, HeadroomBytes: 2 * gib}, "host a has 15,360 MiB left: 85 % of what it may fill is in use"},
		"what attempts take":           {health.Disk{Of: "host a", TotalBytes: 100 * gib, FreeBytes: gib, OutputBytes: 4 * gib}, "in use; files of attempts take 4,096 MiB"},
		"full is told otherwise":       {health.Disk{Of: "host a", TotalBytes: 102 * gib, FreeBytes: 2 * gib, HeadroomBytes: 2 * gib, GrowthBytes: gib}, ""},
		"it grows fast":                {health.Disk{Of: "host a", TotalBytes: 1000 * gib, FreeBytes: 502 * gib, HeadroomBytes: 2 * gib, GrowthBytes: 80 * gib}, "host a has 512,000 MiB left and filled 81,920 MiB in the last day: it is full in about 7 days"},
		"it grows slowly":              {health.Disk{Of: "host a", TotalBytes: 1000 * gib, FreeBytes: 502 * gib, HeadroomBytes: 2 * gib, GrowthBytes: 70 * gib}, ""},
		"it takes centuries":           {health.Disk{Of: "host a", TotalBytes: 2e12, FreeBytes: 1e12, GrowthBytes: 5 << 20}, ""},
		"it shrinks":                   {health.Disk{Of: "host a", TotalBytes: 1000 * gib, FreeBytes: 502 * gib, GrowthBytes: -70 * gib}, ""},
		"a disk smaller than headroom": {health.Disk{Of: "host a", TotalBytes: gib, FreeBytes: gib, HeadroomBytes: 2 * gib}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tt.says == "" {
				require.Empty(t, tt.disk.Warning())
			} else {
				require.Contains(t, tt.disk.Warning(), tt.says)
			}
		})
	}
}
