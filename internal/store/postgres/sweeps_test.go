package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestGetSweep_Summary(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		goal   berth.Goal
		values []float64
		best   int
	}{
		{berth.GoalMaximize, []float64{0.5, 0.9, 0.9, -1}, 2},
		{berth.GoalMinimize, []float64{0.5, -1, 0.9, -1}, 2},
		{berth.GoalMinimize, nil, 0},
	} {
		b := setup(t)
		b.settle(t, b.next(t, gib), berth.TrialSucceeded, berth.FailureOK, new(100.0)) // of another sweep
		b.begin(t, berth.Spec{Name: "s", Objective: &berth.Objective{Metric: "acc", Goal: test.goal}})

		for _, value := range test.values {
			b.settle(t, b.next(t, gib), berth.TrialSucceeded, berth.FailureOK, &value)
		}

		get := func() berth.Sweep {
			got, err := b.store.GetSweep(t.Context(), b.sweep)
			require.NoError(t, err)

			return got
		}

		waits := b.request(t, gib) // it has no value
		b.runs(t, waits, berth.FailureHostOOM, gib)
		require.Equal(t, test.best, get().BestTrial)
		require.Zero(t, get().Counts.OOMRetries, "it was not tried again yet")

		b.place(t, b.again(t, waits, 2))

		got := get()
		require.Equal(t, 1, got.Counts.OOMRetries)
		require.Equal(t, len(test.values), got.Counts.Succeeded)

		if test.best == 0 {
			require.Nil(t, got.BestValue)

			continue
		}

		require.InDelta(t, test.values[test.best-1], *got.BestValue, 0)
	}
}

func TestFirstTrialRan(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)

	began, err := b.store.FirstTrialRan(t.Context(), r.SweepID)
	require.NoError(t, err)
	require.Zero(t, began, "a trial that waits does not run")

	b.place(t, r)
	b.place(t, b.request(t, gib))

	began, err = b.store.FirstTrialRan(t.Context(), r.SweepID)
	require.NoError(t, err)
	require.Equal(t, *b.getTrial(t, 1).StartedAt, began)
}
