package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
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
		sweep := uuid.NewString()
		_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
			ID: sweep, Spec: berth.Spec{Name: "s", Objective: &berth.Objective{Metric: "acc", Goal: test.goal}},
			ImageDigest: "sha256:x", CreatedBy: "local",
		})
		require.NoError(t, err)

		other := b.request(t, gib) // of another sweep
		_, err = b.store.SetTrialState(t.Context(), berth.TrialUpdate{
			TrialID: other.TrialID, SweepID: b.sweep, Number: 1, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(100.0),
		})
		require.NoError(t, err)

		b.sweep, b.trial = sweep, 0

		for i, value := range test.values {
			r := b.request(t, gib)
			_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
				TrialID: r.TrialID, SweepID: sweep, Number: i + 1, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: &value,
			})
			require.NoError(t, err)
		}

		waits := b.request(t, gib) // it has no value
		placed := b.place(t, waits)
		require.NoError(t, b.store.FinishAttempt(t.Context(), result(waits, placed.Token, berth.Outcome{
			Kind: berth.FailureHostOOM, Message: "oom", FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 3, OOMKills: 1},
		})))

		got, err := b.store.GetSweep(t.Context(), sweep)
		require.NoError(t, err)
		require.Equal(t, test.best, got.BestTrial)
		require.Zero(t, got.Counts.OOMRetries, "it was not tried again yet")

		again := waits
		again.AttemptID, again.Number = uuid.NewString(), 2
		_, err = b.store.RequestPlacement(t.Context(), again)
		require.NoError(t, err)
		b.place(t, again)

		got, err = b.store.GetSweep(t.Context(), sweep)
		require.NoError(t, err)
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

	trial, err := b.store.GetTrial(t.Context(), r.SweepID, 1)
	require.NoError(t, err)

	began, err = b.store.FirstTrialRan(t.Context(), r.SweepID)
	require.NoError(t, err)
	require.Equal(t, *trial.StartedAt, began)
}
