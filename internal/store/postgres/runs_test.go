package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// outbox takes everything out of the outbox.
func (b *bundle) outbox(t *testing.T) []berth.OutboxMessage {
	t.Helper()

	all, err := b.store.ClaimOutbox(t.Context(), 100, time.Minute)
	require.NoError(t, err)

	ids := make([]int64, len(all))
	for i, m := range all {
		ids[i] = m.ID
	}

	require.NoError(t, b.store.SettleOutbox(t.Context(), berth.Delivery{Delivered: ids}))

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
			TrialID: b.next(t, gib).TrialID, SweepID: b.sweep, Number: number, State: berth.TrialSucceeded,
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
	require.Equal(t, berth.TrialEnd{Number: 2, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(0.2)}, news)

	ended, err := b.store.EndedTrials(t.Context(), b.sweep, []int{1, 2, 3})
	require.NoError(t, err)
	require.Equal(t, []berth.TrialEnd{{Number: 1, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(0.1)}, news}, ended)
}

// A database restored from before the run that carries a sweep on follows it,
// and the sweep gets the ends of trials that earlier runs started.
func TestFollowSweepRun(t *testing.T) {
	t.Parallel()

	b := setup(t)
	follow := func(known, run string) bool {
		followed, err := b.store.FollowSweepRun(t.Context(), b.sweep, known, run)
		require.NoError(t, err)

		return followed
	}

	b.outbox(t) // the sweep's start
	require.False(t, follow("", "first"), "its run has not begun")

	sweep, err := b.store.SweepRecord(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, berth.SweepPending, sweep.State)

	trial := b.request(t, gib).TrialID
	require.True(t, follow("", "first"), "begun before the copy was made, it has a trial")

	sweep, err = b.store.SweepRecord(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, berth.SweepRunning, sweep.State)
	require.Equal(t, "first", sweep.RunID)
	require.NotNil(t, sweep.StartedAt)
	b.outbox(t)

	_, err = b.store.BeginSweepRun(t.Context(), b.sweep, "third")
	require.NoError(t, err)
	require.False(t, follow("first", "second"), "another run has begun since it was looked")
	require.Empty(t, b.outbox(t))
	require.True(t, follow("third", "fourth"))

	told := b.outbox(t)
	require.Len(t, told, 1)
	require.Equal(t, "sweep-"+b.sweep, told[0].WorkflowID)

	var news berth.TrialEnd
	require.NoError(t, json.Unmarshal(told[0].Payload, &news))
	require.Zero(t, news, "look them up")

	changed, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
		TrialID: trial, SweepID: b.sweep, Number: 1, State: berth.TrialSucceeded, Kind: berth.FailureOK, SweepRun: "third",
	})
	require.NoError(t, err)
	require.True(t, changed)
	require.Len(t, b.outbox(t), 1, "an earlier run started it")

	b.setState(t, berth.SweepCanceled)
	require.False(t, follow("fourth", "fifth"), "it has ended")
}

// A trial without a waiting request and a running attempt sends no news by
// itself.
func TestSilentTrials(t *testing.T) {
	t.Parallel()

	b := setup(t)
	silent := func(after int, since time.Duration, limit int) []int {
		trials, err := b.store.SilentTrials(t.Context(), berth.Trial{SweepID: b.sweep, Number: after}, since, limit)
		require.NoError(t, err)

		numbers := []int{}
		for _, trial := range trials {
			require.Equal(t, b.sweep, trial.SweepID)
			require.NotEmpty(t, trial.ID)

			numbers = append(numbers, trial.Number)
		}

		return numbers
	}

	b.request(t, gib) // 1 waits

	b.place(t, b.request(t, gib)) // 2 is about to start

	b.runs(t, b.request(t, gib), berth.FailureHostOOM, 2*gib) // 3 has run

	_, err := b.store.WithdrawRequest(t.Context(), b.request(t, gib).AttemptID) // 4
	require.NoError(t, err)

	ended := b.request(t, gib) // 5
	b.runs(t, ended, berth.FailureOK, gib)
	b.settle(t, ended, berth.TrialSucceeded, berth.FailureOK, nil)

	require.Equal(t, []int{3, 4}, silent(0, 0, 10))
	require.Equal(t, []int{3}, silent(0, 0, 1))
	require.Equal(t, []int{4}, silent(3, 0, 1))

	b.exec(t, "UPDATE placement_requests SET decided_at = now() - interval '2 hours' WHERE decided_at IS NOT NULL")
	require.Empty(t, silent(0, time.Hour, 10), "they were just made")
	b.exec(t, "UPDATE trials SET created_at = now() - interval '2 hours'")
	require.Equal(t, []int{4}, silent(0, time.Hour, 10), "the attempt of the other has just ended")
	b.exec(t, "UPDATE attempts SET finished_at = now() - interval '2 hours' WHERE finished_at IS NOT NULL")
	require.Equal(t, []int{3, 4}, silent(0, time.Hour, 10))
	b.exec(t, "UPDATE placement_requests SET decided_at = now() WHERE decided_at IS NOT NULL")
	require.Empty(t, silent(0, time.Hour, 10), "their requests were just decided")

	all, err := b.store.SilentTrials(t.Context(), berth.Trial{}, 0, 10)
	require.NoError(t, err)
	require.Len(t, all, 2)

	b.setState(t, berth.SweepCanceled)
	require.Empty(t, silent(0, 0, 10), "its sweep has ended")
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

	require.Equal(t, berth.RequestWithdrawn, b.status(t, waiting))

	late := waiting // a step that was canceled may still be at work
	late.AttemptID = uuid.NewString()
	status, err := b.store.RequestPlacement(t.Context(), late)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWithdrawn, status.State)

	_, err = b.store.PlacementStatus(t.Context(), late.AttemptID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

func TestPlannedTrial(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)

	planned, err := b.store.PlannedTrial(t.Context(), b.sweep, 1, berth.StageMain)
	require.NoError(t, err)
	require.Equal(t, r.TrialID, planned.ID)
	require.Equal(t, "acc", planned.Spec.Objective.Metric)
	require.Empty(t, planned.Footprints)
	require.Zero(t, planned.Attempts)

	// The first attempt is the answer to the second request, and there is a third.
	seen := berth.SeenAttempt{AttemptID: r.AttemptID, Token: b.place(t, r).Token}
	require.NoError(t, b.store.AbandonAttempt(t.Context(), r.AttemptID, "its host does not answer"))
	b.again(t, r, 2)
	b.touch(t, berth.HostFree{MemoryBytes: 8 * gib}, seen)

	first := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptPlaced, first.State, "its host has it again")
	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, first.Token, berth.Outcome{Kind: berth.FailureCrashed, FinishedAt: time.Now()})))
	b.place(t, b.again(t, r, 3))

	planned, err = b.store.PlannedTrial(t.Context(), b.sweep, 1, berth.StageMain)
	require.NoError(t, err)
	require.Equal(t, 3, planned.Attempts, "the number of the last")

	_, err = b.store.PlannedTrial(t.Context(), b.sweep, 2, berth.StageMain)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

// A listener replaces a cut connection and does not spin until then.
func TestListen_ReplacesALostConnection(t *testing.T) {
	t.Parallel()

	b := bare(t)
	ctx, stop := context.WithCancel(t.Context())
	wakes, ended := make(chan struct{}, 1000), make(chan error, 1)

	go func() {
		ended <- b.store.Listen(ctx, time.Hour, func() { wakes <- struct{}{} }, "news")
	}()

	<-wakes // it listens
	b.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
	<-wakes // something may have been missed
	require.LessOrEqual(t, len(wakes), 2)

	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// An owner goes on while the database is unreachable, and owns again after it.
func TestOwn_OutlivesALostConnection(t *testing.T) {
	t.Parallel()

	b := bare(t)
	holder := func() int { // 0 = none
		return number[int](t, b.pool, `SELECT coalesce(max(l.pid), 0) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE l.locktype = 'advisory' AND d.datname = current_database()`)
	}

	ended := make(chan error, 1)
	stop := hold(t, func(ctx context.Context, held func(context.Context) error) error {
		err := b.store.Own(ctx, "machine", time.Minute, held)
		ended <- err

		return err
	})

	first := holder()
	b.exec(t, `SELECT pg_terminate_backend($1)`, first)
	require.Eventually(t, func() bool { second := holder(); return second != 0 && second != first }, 20*time.Second, 50*time.Millisecond,
		"the lock is taken again")
	require.Empty(t, ended, "and what is owned went on")

	err := b.store.Own(t.Context(), "machine", 0, func(context.Context) error { return nil })
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "no other may own it")

	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return holder() == 0 }, 20*time.Second, 50*time.Millisecond)
}
