package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// A pause is no wait: a resumed sweep goes behind the requests that waited
// during the pause, and then waits like any other.
func TestQueue_APauseIsNoWait(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	r := &retained{bundle: setup(t)}
	paused := r.sweep
	first := r.bundle.request(t, gib)

	set := func(state berth.SweepState) {
		_, err := r.store.SetSweepState(ctx, paused, state, "")
		require.NoError(t, err)
	}
	queue := func() (ids []string, waited map[string]time.Duration) {
		q, err := r.store.Queue(ctx, 10)
		waiting := q.Waiting
		require.NoError(t, err)

		waited = make(map[string]time.Duration)
		for _, w := range waiting {
			ids, waited[w.AttemptID] = append(ids, w.AttemptID), w.Waited
		}

		return ids, waited
	}
	later := func(d time.Duration) {
		r.exec(t, "UPDATE placement_requests SET requested_at = requested_at - $1::interval", d)
		r.exec(t, "UPDATE sweeps SET resumed_at = resumed_at - $1::interval", d)
	}

	set(berth.SweepRunning)
	later(time.Hour)

	_, waited := queue()
	require.InDelta(t, time.Hour, waited[first.AttemptID], float64(time.Minute), "a sweep that was never paused waits from its request on")

	set(berth.SweepPaused)
	r.next(t)
	second := r.bundle.request(t, gib)
	later(time.Minute)
	set(berth.SweepRunning)

	ids, waited := queue()
	require.Equal(t, []string{second.AttemptID, first.AttemptID}, ids, "what waited a minute goes before what was resumed just now")
	require.Less(t, waited[first.AttemptID], time.Minute)
	require.Less(t, waited[first.AttemptID], packing.DrainAfter, "so that no host is drained for it")

	set(berth.SweepRunning)
	later(packing.DrainAfter)
	third := r.bundle.request(t, gib)

	ids, waited = queue()
	require.Equal(t, []string{second.AttemptID, first.AttemptID, third.AttemptID}, ids, "it keeps its turn before what comes later")
	require.GreaterOrEqual(t, waited[first.AttemptID], packing.DrainAfter, "and a host is drained for it in the end")
}

// Waiting behind the sweep's limit is no wait for room. When the limit is
// raised, the requests go behind those of other sweeps, and no host is drained
// for all its requests.
func TestQueue_WaitingBehindTheOwnLimitIsNoWait(t *testing.T) {
	t.Parallel()

	ctx := t.Context()

	for name, tt := range map[string]struct {
		most int
		wait time.Duration
	}{
		"raised":    {3, 0},
		"given up":  {0, 0},
		"lowered":   {1, time.Hour},
		"unchanged": {2, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := &retained{bundle: setup(t)}
			require.NoError(t, r.store.SetMaxParallel(ctx, r.sweep, 2))
			r.place(t, r.bundle.request(t, gib))
			r.bundle.request(t, gib)
			r.exec(t, "UPDATE placement_requests SET requested_at = requested_at - interval '1 hour'")

			require.NoError(t, r.store.SetMaxParallel(ctx, r.sweep, tt.most))

			q, err := r.store.Queue(ctx, 10)
			waiting := q.Waiting
			require.NoError(t, err)
			require.Len(t, waiting, 1)
			require.InDelta(t, tt.wait, waiting[0].Waited, float64(time.Minute))
		})
	}
}
