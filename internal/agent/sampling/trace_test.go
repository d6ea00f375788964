package sampling

import (
	"encoding/json"
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
	tr := NewTrace(start, KeptTrace{})
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

// The largest trace fits into the size that traceName promises.
func TestTrace_FileIsSmall(t *testing.T) {
	t.Parallel()

	start := time.Now()
	tr := NewTrace(start, KeptTrace{})

	for n := range berth.MaxMemoryPoints {
		at := start.Add(time.Duration(n) * (1 << 16) * time.Second)
		tr.AddHost(1<<40, at)
		tr.AddDevice(1<<40, at)
		tr.AddActivity(Part{known: true, parts: parts{1}}, at)
	}

	require.Len(t, tr.Rest(), berth.MaxMemoryPoints)

	kept, changed := tr.Kept("c")
	require.True(t, changed)

	data, err := json.Marshal(kept)
	require.NoError(t, err)
	require.Less(t, len(data), 50_000)

	_, changed = tr.Kept("c")
	require.False(t, changed, "it was written down")
}

// A wall clock that is set back changes nothing of what was held before: between two Runs,
// and between the container's start and the first Run.
func TestTrace_ClockStepsBack(t *testing.T) {
	t.Parallel()

	last := func(tr *Trace) int { points := tr.Rest(); return points[len(points)-1].Second }
	start := time.Now()
	tr := NewTrace(start, KeptTrace{})
	tr.opened = start
	tr.AddHost(100, start.Add(459*time.Second))

	kept, _ := tr.Kept("c")
	next := NewTrace(start.Add(5*time.Minute), kept) // by the new clock the attempt is minutes younger
	next.AddHost(900, next.opened.Add(10*time.Second))
	require.Equal(t, 469, last(next))

	early := NewTrace(start.Add(5*time.Minute), KeptTrace{})
	early.AddHost(1, early.opened.Add(-time.Second))
	early.AddHost(1, early.opened)
	require.Equal(t, 0, last(early))
}

// An attempt whose start is not known begins when Berth sees it; a clock that is far ahead
// gives no second that PostgreSQL cannot keep.
func TestTrace_NoStart(t *testing.T) {
	t.Parallel()

	tr := NewTrace(time.Time{}, KeptTrace{})
	tr.AddHost(1, tr.opened.Add(3*time.Second))
	require.Equal(t, 3, tr.Rest()[0].Second)

	ahead := NewTrace(time.Now().AddDate(-200, 0, 0), KeptTrace{})
	ahead.AddHost(1, ahead.opened)
	require.LessOrEqual(t, ahead.Rest()[0].Second, math.MaxInt32)
	require.Positive(t, ahead.Rest()[0].Second)
}
