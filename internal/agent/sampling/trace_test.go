package sampling

import (
	"math"
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
	tr := NewTrace(start)
	tr.opened = start

	for second := range 3 * berth.MaxMemoryPoints {
		at := start.Add(time.Duration(second) * time.Second)
		tr.AddHost(int64(second%100), at)
		tr.AddDevice(7, at.Add(-2*time.Second))
	}

	tr.AddActivity(Part{known: true, parts: parts{1.02}}, start.Add(time.Second))
	tr.AddActivity(Part{}, start.Add(9*time.Second))

	points := tr.Rest()
	require.LessOrEqual(t, len(points), berth.MaxMemoryPoints)
	require.Len(t, points, 3*berth.MaxMemoryPoints/4)
	require.Equal(t, berth.MemoryPoint{HostBytes: new(int64(3)), DeviceBytes: new(int64(7)), SMMilli: new(int64(1000))}, points[0])
	require.Nil(t, points[2].SMMilli)
	require.Equal(t, int64(99), *points[99/4].HostBytes)
}

// An attempt whose start is not known begins when Berth sees it; a clock that is far ahead
// gives no second that PostgreSQL cannot keep.
func TestTrace_NoStart(t *testing.T) {
	t.Parallel()

	tr := NewTrace(time.Time{})
	tr.AddHost(1, tr.opened.Add(3*time.Second))
	require.Equal(t, 3, tr.Rest()[0].Second)

	ahead := NewTrace(time.Now().AddDate(-200, 0, 0))
	ahead.AddHost(1, ahead.opened)
	require.LessOrEqual(t, ahead.Rest()[0].Second, math.MaxInt32)
	require.Positive(t, ahead.Rest()[0].Second)
}

// What could not be stored is told again with what came meanwhile, and so is a figure that grew
// while it was stored.
func TestTrace_TakeAndRestore(t *testing.T) {
	t.Parallel()

	start := time.Now()
	tr := NewTrace(start)
	tr.opened = start

	for second, bytes := range []int64{7, 6, 1} {
		tr.AddHost(bytes, start.Add(time.Duration(second)*time.Second))
	}

	taken := tr.Take()
	require.Equal(t, []berth.MemoryPoint{{HostBytes: new(int64(7))}, {Second: 1, HostBytes: new(int64(6))}}, taken, "the newest second goes on")
	tr.AddHost(8, start.Add(time.Second))
	require.Equal(t, []berth.MemoryPoint{{Second: 1, HostBytes: new(int64(8))}, {Second: 2, HostBytes: new(int64(1))}}, tr.Rest())

	tr.Restore(taken)
	require.Equal(t, []berth.MemoryPoint{{HostBytes: new(int64(7))}, {Second: 1, HostBytes: new(int64(8))}}, tr.Take())
}
