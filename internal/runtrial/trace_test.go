package runtrial

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// While the database is away what waits stays small, and keeps its peaks; a late reading
// of a shared GPU finds its interval.
func TestTrace(t *testing.T) {
	t.Parallel()

	start := time.Now()
	tr := newTrace(start)

	for second := range 3 * berth.MaxMemoryPoints {
		at := start.Add(time.Duration(second) * time.Second)
		tr.addHost(int64(second%100), at)
		tr.addDevice(7, at.Add(-2*time.Second))

		if second%400 == 0 {
			tr.restore(tr.take())
		}
	}

	tr.addActivity(part{known: true, parts: parts{1.02}}, start.Add(time.Second))
	tr.addActivity(part{}, start.Add(9*time.Second))

	points := tr.take()
	require.LessOrEqual(t, len(points), berth.MaxMemoryPoints)
	require.Len(t, points, 3*berth.MaxMemoryPoints/4)
	require.Equal(t, berth.MemoryPoint{HostBytes: new(int64(3)), DeviceBytes: new(int64(7)), SMMilli: new(int64(1000))}, points[0])
	require.Nil(t, points[2].SMMilli)
	require.Equal(t, int64(99), *points[99/4].HostBytes)
	require.Empty(t, tr.take())
}
