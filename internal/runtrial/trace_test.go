package runtrial

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/fake"
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

// What the database did not take is told again with what came meanwhile.
func TestPutMemory_AfterAnOutage(t *testing.T) {
	t.Parallel()

	r := setup(t)
	run := r.newRun(t)
	start := time.Now()
	run.trace = newTrace(start)
	away := true

	r.books.Hook(func(h *fake.LedgerHooks) {
		h.PutMemory = func(ctx context.Context, _ string, call func(context.Context) error) error {
			if away {
				return berth.Errorf(berth.KindUnavailable, "the database restarts")
			}

			return call(ctx)
		}
	})

	run.trace.addHost(7, start)
	run.putMemory(t.Context())
	require.Empty(t, r.books.memory(t))

	run.trace.addHost(5, start)
	run.trace.addHost(6, start.Add(time.Second))

	away = false

	run.putMemory(t.Context())

	stored := r.books.memory(t)
	require.Len(t, stored, 2)
	require.Equal(t, int64(7), *stored[0].HostBytes)
	require.Equal(t, int64(6), *stored[1].HostBytes)
	require.Empty(t, run.trace.take(), "it is told once")
}
