package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

const gib = 1 << 30

// bundle is a store with a host of 4 cores and 8 GiB, and a sweep.
type bundle struct {
	store *postgres.Store
	host  berth.Host
	sweep string
	trial int
}

func setup(t *testing.T) *bundle {
	t.Helper()

	return setupOn(t, pgtest.URL(t))
}

// setupOn is setup on a database that the test looks at itself.
func setupOn(t *testing.T, url string) *bundle {
	t.Helper()

	store := open(t, url)

	b := &bundle{store: store, sweep: uuid.NewString()}
	b.host = berth.Host{
		ID: uuid.NewString(), Name: "a", BootID: "boot", CPUMilli: 4000,
		MemoryBytes: 8 * gib, MemoryFreeBytes: 8 * gib,
	}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	_, created, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
		ID: b.sweep, Spec: berth.Spec{Name: "s", Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}},
		ImageDigest: "sha256:x", CreatedBy: "local",
	})
	require.NoError(t, err)
	require.True(t, created)

	return b
}

// request makes a trial and asks for a place.
func (b *bundle) request(t *testing.T, memory int64) berth.PlacementRequest {
	t.Helper()

	b.trial++

	shape := berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}
	trial := uuid.NewString()

	_, _, err := b.store.Suggest(t.Context(), b.sweep, b.trial, 1, false,
		func(berth.Tried) ([]berth.NewTrial, bool, error) {
			return []berth.NewTrial{{ID: trial, Params: berth.Assignment{"lr": berth.FloatValue(1e15)}, Shape: shape}}, false, nil
		})
	require.NoError(t, err)

	r := berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: b.sweep, TrialID: trial, WorkflowID: "w", Number: 1,
		Stage: berth.StageMain, Purpose: berth.PurposeRun, ShapeKey: shape.Key(),
		Demand: berth.Demand{MemoryBytes: memory, CPUMilli: 1000},
	}

	status, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)

	return r
}

func (b *bundle) place(t *testing.T, r berth.PlacementRequest) berth.PlacementStatus {
	t.Helper()

	placed, err := b.store.Place(t.Context(), map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, Demand: r.Demand}})
	require.NoError(t, err)
	require.Equal(t, []string{r.AttemptID}, placed)

	status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestPlaced, status.State)

	return status
}

func (b *bundle) reserved(t *testing.T) (memory, cpu int64) {
	t.Helper()

	hosts, err := b.store.ListHosts(t.Context())
	require.NoError(t, err)

	return hosts[0].MemoryReservedBytes, hosts[0].CPUMilliReserved
}

func result(r berth.PlacementRequest, token int64, o berth.Outcome) berth.Result {
	return berth.Result{
		AttemptID: r.AttemptID, TrialID: r.TrialID, SweepID: r.SweepID, ShapeKey: r.ShapeKey, Token: token,
		Reserved: r.Demand, Outcome: o, Source: berth.FootprintFull, Proof: "container exited",
	}
}

func TestPlace_BooksOnceAndReleasesOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, 2*gib)
	status := b.place(t, r)

	memory, cpu := b.reserved(t)
	require.Equal(t, int64(2*gib), memory)
	require.Equal(t, int64(1000), cpu)

	again, err := b.store.Place(t.Context(), map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, Demand: r.Demand}})
	require.NoError(t, err)
	require.Empty(t, again)

	value := 0.9
	now := time.Now().UTC()
	done := result(r, status.Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "ok", Value: &value, StartedAt: now.Add(-10 * time.Second), FinishedAt: now,
		Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 5, CPU: berth.Duration(5 * time.Second), Wall: berth.Duration(10 * time.Second)},
	})
	require.NoError(t, b.store.FinishAttempt(t.Context(), done))
	require.NoError(t, b.store.FinishAttempt(t.Context(), done), "a repeated commit is harmless")

	memory, cpu = b.reserved(t)
	require.Zero(t, memory)
	require.Zero(t, cpu)

	f := b.footprint(t, r.ShapeKey)
	require.Equal(t, 1, f.Samples, "a repeated commit teaches once")
	require.Equal(t, int64(gib), f.MemoryPeakBytes)
	require.Equal(t, int64(500), f.CPUMilli)
}

// A round decides on the state at its beginning. If a person has since been
// told that a sweep starts no more trials, or at most a number of them, that
// promise holds.
func TestPlace_NothingThatItsSweepForbidsByNow(t *testing.T) {
	t.Parallel()

	ctx := t.Context()

	for _, state := range []berth.SweepState{berth.SweepPaused, berth.SweepStopping, berth.SweepCanceling} {
		b := setup(t)
		r := b.request(t, gib)
		_, err := b.store.SetSweepState(ctx, b.sweep, state, "")
		require.NoError(t, err)

		placed, err := b.store.Place(ctx, map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, Demand: r.Demand}})
		require.NoError(t, err)
		require.Empty(t, placed, state)
		require.Equal(t, berth.RequestWaiting, b.status(t, r), state)
	}

	b := setup(t)
	first := b.request(t, gib)
	b.place(t, first)

	second, third := b.request(t, gib), b.request(t, gib)
	decided := map[string]berth.Placement{second.AttemptID: {HostID: b.host.ID, Demand: second.Demand}, third.AttemptID: {HostID: b.host.ID, Demand: third.Demand}}

	for _, limit := range []struct{ most, placed int }{{1, 0}, {2, 1}, {2, 0}, {0, 1}} {
		require.NoError(t, b.store.SetMaxParallel(ctx, b.sweep, limit.most))

		placed, err := b.store.Place(ctx, decided)
		require.NoError(t, err)
		require.Len(t, placed, limit.placed)
	}
}

func TestPlace_DatabaseRefusesDoubleBooking(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.place(t, b.request(t, 6*gib))

	second := b.request(t, 6*gib)
	_, err := b.store.Place(t.Context(), map[string]berth.Placement{second.AttemptID: {HostID: b.host.ID, Demand: second.Demand}})
	require.Equal(t, berth.KindExhausted, berth.KindOf(err))

	status, err := b.store.PlacementStatus(t.Context(), second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State, "nothing of a refused booking stays")
}

func TestFinishAttempt_FencedByAnAbandonedToken(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)
	status := b.place(t, r)

	require.NoError(t, b.store.AbandonAttempt(t.Context(), r.AttemptID, "host lost"))

	err := b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{Kind: berth.FailureOK, FinishedAt: time.Now()}))
	require.Equal(t, berth.KindFenced, berth.KindOf(err))

	memory, _ := b.reserved(t)
	require.Equal(t, int64(gib), memory, "the memory of an abandoned attempt stays booked until there is proof")

	require.NoError(t, b.store.ReleaseLease(t.Context(), r.AttemptID, "no container"))
	require.NoError(t, b.store.ReleaseLease(t.Context(), r.AttemptID, "no container"))

	memory, _ = b.reserved(t)
	require.Zero(t, memory)
}

func TestFinishAttempt_OutOfMemoryRaisesWaitingSiblings(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)
	sibling := b.request(t, gib)
	status := b.place(t, r)

	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
		Kind: berth.FailureHostOOM, Message: "oom", FinishedAt: time.Now(),
		Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 3, OOMKills: 1},
	})))

	waiting := b.waiting(t)
	require.Len(t, waiting, 1)
	require.Equal(t, int64(2*gib), waiting[sibling.AttemptID], "what a shape gets that is not measured is more")
}

func TestFinishAttempt_KeepsTheFrameworksPeak(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)
	status := b.place(t, r)
	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: gib, FrameworkPeakBytes: 300 << 20, Samples: 3, Steps: 7, StepTime: 9, DevicePhases: berth.Phases{StartBytes: 1, TrainingBytes: 2, ValidationBytes: 3}},
	})))

	attempt, err := b.store.GetAttempt(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.EqualValues(t, 300<<20, attempt.Usage.FrameworkPeakBytes)
	require.Equal(t, berth.Phases{StartBytes: 1, TrainingBytes: 2, ValidationBytes: 3}, attempt.Usage.DevicePhases)
	require.Equal(t, []int64{7, 9}, []int64{attempt.Usage.Steps, int64(attempt.Usage.StepTime)})
}

// A sibling that asked for more than any host has would be ended as impossible.
func TestFinishAttempt_RaisesSiblingsToNoMoreThanThereIs(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, 7*gib)
	sibling := b.request(t, gib)

	status := b.place(t, r)
	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
		Kind: berth.FailureHostOOM, Message: "oom", FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: 7 * gib, Samples: 3},
	})))

	require.Equal(t, map[string]int64{sibling.AttemptID: 8 * gib}, b.waiting(t))
}

func TestSuggest_RetryReturnsTheSameTrials(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first := b.request(t, gib)

	again := func(berth.Tried) ([]berth.NewTrial, bool, error) {
		t.Error("a repeated call must not ask the search again")

		return nil, false, nil
	}

	numbers, _, err := b.store.Suggest(t.Context(), b.sweep, 1, 8, false, again)
	require.NoError(t, err)
	require.Equal(t, []int{1}, numbers)

	// A workflow older than the database asks for trials that exist already: in steps, like all others.
	for range 20 {
		b.request(t, gib)
	}

	numbers, _, err = b.store.Suggest(t.Context(), b.sweep, 5, 8, false, again)
	require.NoError(t, err)
	require.Equal(t, []int{5, 6, 7, 8, 9, 10, 11, 12}, numbers)

	trial, err := b.store.GetTrial(t.Context(), b.sweep, 1)
	require.NoError(t, err)
	require.Equal(t, first.TrialID, trial.ID)
	require.Equal(t, berth.FloatValue(1e15), trial.Params["lr"], "a float stays a float")
}

// A search gets the last trial, which of its draws were tried, and on request all tried ones.
func TestSuggest_TellsWhatWasTried(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.request(t, gib)

	own := berth.Assignment{"lr": berth.FloatValue(1e15)}
	other := berth.Assignment{"lr": berth.FloatValue(2)}

	_, _, err := b.store.Suggest(t.Context(), b.sweep, 2, 8, false, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Equal(t, 1, tried.Made)
		require.Equal(t, own, tried.Last)

		for _, keys := range [][]string{{other.Key(), own.Key()}, nil} {
			seen, err := tried.Seen(keys)
			require.NoError(t, err)
			require.Equal(t, map[string]bool{own.Key(): true}, seen)
		}

		return nil, false, nil
	})
	require.NoError(t, err)
}

// A database was restored from before trials 2 to 5, and the sweep goes on with
// trial 6: the search fills the gap first, so that no combination is left out.
func TestSuggest_FillsWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.request(t, gib)

	suggest := func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Equal(t, 1, tried.Made)

		trials := make([]berth.NewTrial, 6)
		for i := range trials {
			trials[i] = berth.NewTrial{
				ID: uuid.NewString(), Params: berth.Assignment{"lr": berth.FloatValue(float64(tried.Made + i))},
			}
		}

		return trials, false, nil
	}

	numbers, _, err := b.store.Suggest(t.Context(), b.sweep, 6, 2, false, suggest)
	require.NoError(t, err)
	require.Equal(t, []int{6, 7}, numbers)

	for number := 2; number <= 7; number++ {
		trial, err := b.store.GetTrial(t.Context(), b.sweep, number)
		require.NoError(t, err)
		require.Equal(t, berth.FloatValue(float64(number-1)), trial.Params["lr"], "the values of its number")
	}
}

func TestCreateSweep_IdempotencyKey(t *testing.T) {
	t.Parallel()

	b := setup(t)
	n := berth.NewSweep{ID: uuid.NewString(), Spec: berth.Spec{Name: "s"}, CreatedBy: "me", Route: "POST /sweeps", Key: "k", BodyHash: []byte{1}}

	before, err := b.store.SubmittedSweep(t.Context(), n.SubmissionKey())
	require.NoError(t, err)
	require.Empty(t, before)

	id, created, err := b.store.CreateSweep(t.Context(), n)
	require.NoError(t, err)
	require.True(t, created)

	n.ID = uuid.NewString()
	again, created, err := b.store.CreateSweep(t.Context(), n)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, id, again)

	found, err := b.store.SubmittedSweep(t.Context(), n.SubmissionKey())
	require.NoError(t, err)
	require.Equal(t, id, found)

	n.BodyHash = []byte{2}
	_, _, err = b.store.CreateSweep(t.Context(), n)
	require.Equal(t, berth.KindConflict, berth.KindOf(err))

	_, err = b.store.SubmittedSweep(t.Context(), n.SubmissionKey())
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
}

// A waiting request may become a short probe. A placed request stays as it is.
func TestResizeRequest(t *testing.T) {
	t.Parallel()

	b := setup(t)
	placed, waiting := b.request(t, 2*gib), b.request(t, 2*gib)
	b.place(t, placed)

	for _, r := range []berth.PlacementRequest{placed, waiting} {
		r.Short = true
		status, err := b.store.ResizeRequest(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, r.AttemptID == placed.AttemptID, status.State == berth.RequestPlaced)
		require.False(t, status.Short)
	}

	require.True(t, b.place(t, waiting).Short)
}

// The values that size a request are present when it is decided: the user's,
// the newest out-of-memory of its trial, and the footprint of its shape.
func TestQueue_WhatRequestsAreSizedBy(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, 4*gib), berth.FailureOK, gib)

	retried := b.request(t, gib)
	b.runs(t, retried, berth.FailureHostOOM, gib)

	retried.Last = ranOut(gib, 1)
	retried = b.again(t, retried, 2)
	sized := b.sized(t, 3*gib, 1500).request(t, gib)

	queue, err := b.store.Queue(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, int64(gib), queue.Footprints[retried.ShapeKey][berth.ClassCPU].MemoryPeakBytes)

	last, resources := map[string]*berth.LastOOM{}, map[string]berth.Resources{}
	for _, r := range queue.Waiting {
		last[r.AttemptID], resources[r.AttemptID] = r.Last, r.Resources
	}

	require.Equal(t, ranOut(gib, 1), last[retried.AttemptID])
	require.Nil(t, last[sized.AttemptID])
	require.Equal(t, berth.Size(3*gib), resources[sized.AttemptID].Memory)
	require.Equal(t, berth.CPUs(1500), resources[sized.AttemptID].CPUs)
	require.Zero(t, resources[retried.AttemptID].Memory)
}

// A host's problem rarely ends at once: ten free retries would be over in
// seconds.
func TestRequestPlacement_FreeRetriesPause(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)

	for n, kind := range []berth.FailureKind{1: berth.FailureInfra, 2: berth.FailureDeviceBusy, 3: berth.FailureInfra} {
		if n == 0 {
			continue
		}

		status := b.place(t, r)
		require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
			Kind: kind, Message: "Docker went away", FinishedAt: time.Now(),
		})))

		r.AttemptID, r.Number = uuid.NewString(), n+1
		status, err := b.store.RequestPlacement(t.Context(), r)
		require.NoError(t, err)

		q, err := b.store.Queue(t.Context(), 10)
		waiting := q.Waiting
		require.NoError(t, err)

		if n == 1 {
			require.Len(t, waiting, 1, "once is chance")

			continue
		}

		require.Empty(t, waiting)
		require.Contains(t, status.Reasons[0], "tried again in ")
	}
}
