package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// outbox takes everything out of the outbox.
func (b *bundle) outbox(t *testing.T) []berth.OutboxMessage {
	t.Helper()

	var all []berth.OutboxMessage

	_, err := b.store.DeliverOutbox(t.Context(), 100, func(_ context.Context, messages []berth.OutboxMessage) []int64 {
		ids := make([]int64, len(messages))
		for i, m := range messages {
			ids[i] = m.ID
		}

		all = messages

		return ids
	})
	require.NoError(t, err)

	return all
}

func TestSetTrialState_TellsASweepOnlyOfTrialsOfEarlierRuns(t *testing.T) {
	t.Parallel()

	b := setup(t)
	sweep, err := b.store.BeginSweepRun(t.Context(), b.sweep, "first")
	require.NoError(t, err)
	require.Equal(t, berth.SweepRunning, sweep.State)
	require.NotNil(t, sweep.StartedAt)

	end := func(number int, run string, value float64) {
		changed, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
			TrialID: b.request(t, gib).TrialID, SweepID: b.sweep, Number: number, State: berth.TrialSucceeded,
			Kind: berth.FailureOK, Value: &value, SweepRun: run,
		})
		require.NoError(t, err)
		require.True(t, changed)
	}

	b.outbox(t) // the sweep's start
	end(1, "first", 0.1)
	require.Empty(t, b.outbox(t), "its run hears from Temporal itself")

	_, err = b.store.BeginSweepRun(t.Context(), b.sweep, "second")
	require.NoError(t, err)
	end(2, "first", 0.2)

	told := b.outbox(t)
	require.Len(t, told, 1)
	require.Equal(t, berth.OutboxTrialFinished, told[0].Kind)
	require.Equal(t, "sweep-"+b.sweep, told[0].WorkflowID)

	var news berth.TrialEnd
	require.NoError(t, json.Unmarshal(told[0].Payload, &news))
	require.Equal(t, berth.TrialEnd{Number: 2, State: berth.TrialSucceeded, Value: new(0.2)}, news)

	ended, err := b.store.EndedTrials(t.Context(), b.sweep, []int{1, 2, 3})
	require.NoError(t, err)
	require.Equal(t, []berth.TrialEnd{{Number: 1, State: berth.TrialSucceeded, Value: new(0.1)}, news}, ended)
}

func TestSetTrialState_LeavesNothingRunningOfATrialThatEnded(t *testing.T) {
	t.Parallel()

	b := setup(t)
	running, waiting := b.request(t, gib), b.request(t, gib)
	placed := b.place(t, running)

	for i, r := range []berth.PlacementRequest{running, waiting} {
		_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
			TrialID: r.TrialID, SweepID: b.sweep, Number: i + 1, State: berth.TrialCanceled, Kind: berth.FailureCanceled,
		})
		require.NoError(t, err)
	}

	err := b.store.AttemptRunning(t.Context(), running.AttemptID, placed.Token, "c", time.Now())
	require.Equal(t, berth.KindFenced, berth.KindOf(err), "its host is told to stop it")

	memory, _ := b.reserved(t)
	require.EqualValues(t, gib, memory, "what it holds stays booked until there is proof")

	status, err := b.store.PlacementStatus(t.Context(), waiting.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWithdrawn, status.State)
}

func TestPlannedTrial(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)

	planned, err := b.store.PlannedTrial(t.Context(), b.sweep, 1)
	require.NoError(t, err)
	require.Equal(t, r.TrialID, planned.ID)
	require.Equal(t, "acc", planned.Spec.Objective.Metric)
	require.Nil(t, planned.Footprint)

	_, err = b.store.PlannedTrial(t.Context(), b.sweep, 2)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}
