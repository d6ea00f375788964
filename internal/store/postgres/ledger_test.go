package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A round decides on the state at its beginning. If a person has since been
// told that a sweep starts no more trials, or at most a number of them, that
// promise holds.
func TestPlace_NothingThatItsSweepForbidsByNow(t *testing.T) {
	t.Parallel()

	b := setup(t)
	place := func(requests ...berth.PlacementRequest) int {
		decided := map[string]berth.Placement{}
		for _, r := range requests {
			decided[r.AttemptID] = berth.Placement{HostID: b.host.ID, Demand: r.Demand}
		}

		placed, err := b.store.Place(t.Context(), decided)
		require.NoError(t, err)

		return len(placed)
	}

	for _, state := range []berth.SweepState{berth.SweepPaused, berth.SweepStopping, berth.SweepCanceling} {
		b.begin(t, berth.Spec{Name: "s"})
		r := b.request(t, gib)
		b.setState(t, state)
		require.Zero(t, place(r), state)
		require.Equal(t, berth.RequestWaiting, b.status(t, r), state)
	}

	b.begin(t, berth.Spec{Name: "s"})
	b.place(t, b.request(t, gib))

	second, third := b.request(t, gib), b.request(t, gib)

	for _, limit := range []struct{ most, placed int }{{1, 0}, {2, 1}, {2, 0}, {0, 1}} {
		require.NoError(t, b.store.SetMaxParallel(t.Context(), b.sweep, limit.most))
		require.Equal(t, limit.placed, place(second, third))
	}
}

func TestSuggest_RetryReturnsTheSameTrials(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first := b.request(t, gib)
	again := func(from int) []int {
		numbers, _, err := b.store.Suggest(t.Context(), b.sweep, from, 8, berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
			t.Error("a repeated call must not ask the search again")

			return nil, false, nil
		})
		require.NoError(t, err)

		return numbers
	}

	require.Equal(t, []int{1}, again(1))

	// A workflow older than the database asks for trials that exist already: in steps, like all others.
	for range 20 {
		b.next(t, gib)
	}

	require.Equal(t, []int{5, 6, 7, 8, 9, 10, 11, 12}, again(5))

	trial := b.getTrial(t, 1)
	require.Equal(t, first.TrialID, trial.ID)
	require.Equal(t, berth.FloatValue(1e15), trial.Params["lr"], "a float stays a float")
}

// A search gets the last trial, which of its draws were tried, and on request all tried ones.
func TestSuggest_TellsWhatWasTried(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.next(t, gib)

	own := berth.Assignment{"lr": berth.FloatValue(1e15)}
	other := berth.Assignment{"lr": berth.FloatValue(2)}

	_, _, err := b.store.Suggest(t.Context(), b.sweep, 2, 8, berth.SearchNeeds{}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
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
	b.next(t, gib)

	numbers, _, err := b.store.Suggest(t.Context(), b.sweep, 6, 2, berth.SearchNeeds{}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Equal(t, 1, tried.Made)

		trials := make([]berth.NewTrial, 6)
		for i := range trials {
			trials[i] = berth.NewTrial{
				ID: uuid.NewString(), Params: berth.Assignment{"lr": berth.FloatValue(float64(tried.Made + i))},
			}
		}

		return trials, false, nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{6, 7}, numbers)

	for number := 2; number <= 7; number++ {
		require.Equal(t, berth.FloatValue(float64(number-1)), b.getTrial(t, number).Params["lr"], "the values of its number")
	}
}

// A waiting request may become a short probe. A placed request stays as it is.
func TestResizeRequest(t *testing.T) {
	t.Parallel()

	b := setup(t)
	placed, waiting := b.request(t, 2*gib), b.request(t, 2*gib)
	b.place(t, placed)

	for _, r := range []berth.PlacementRequest{placed, waiting} {
		r.Short, r.Purpose = true, berth.PurposeProbe
		status, err := b.store.ResizeRequest(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, r.AttemptID == placed.AttemptID, status.State == berth.RequestPlaced)
		require.False(t, status.Short)
	}

	require.True(t, b.place(t, waiting).Short)

	for id, want := range map[string]berth.Purpose{placed.AttemptID: berth.PurposeRun, waiting.AttemptID: berth.PurposeProbe} {
		attempt, err := b.store.GetAttempt(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want, attempt.Purpose)
	}
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
	written := berth.Resources{Memory: 3 * gib, CPUs: 1500}
	sized := b.another(t, written).request(t, gib)

	queue := b.queue(t)
	require.Equal(t, int64(gib), queue.Footprints[retried.ShapeKey][berth.ClassCPU].MemoryPeakBytes)

	last, resources := map[string]*berth.LastOOM{}, map[string]berth.Resources{}
	for _, r := range queue.Waiting {
		last[r.AttemptID], resources[r.AttemptID] = r.Last, r.Resources
	}

	require.Equal(t, ranOut(gib, 1), last[retried.AttemptID])
	require.Nil(t, last[sized.AttemptID])
	require.Equal(t, []int64{3 * gib, 1500}, []int64{int64(resources[sized.AttemptID].Memory), int64(resources[sized.AttemptID].CPUs)})
	require.Zero(t, resources[retried.AttemptID].Memory)
}

// A host's problem rarely ends at once: ten free retries would be over in
// seconds.
func TestRequestPlacement_FreeRetriesPause(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)

	for i, kind := range []berth.FailureKind{berth.FailureInfra, berth.FailureDeviceBusy, berth.FailureInfra} {
		b.place(t, r)
		b.finish(t, r, berth.Outcome{Kind: kind})
		r = b.again(t, r, i+2)

		if i == 0 {
			require.Len(t, b.queue(t).Waiting, 1, "once is chance")
		} else {
			require.Empty(t, b.queue(t).Waiting)
			require.Contains(t, b.placement(t, r).Reasons[0], "tried again in ")
		}
	}
}

// A database that was restored waits for a place for an attempt that its trial
// is past. Placed after the next one was asked for, it would hold that one up.
func TestRequestPlacement_WithdrawsWhatTheTrialIsPast(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first := b.request(t, gib)
	second := b.again(t, first, 2)
	require.Equal(t, berth.RequestWithdrawn, b.status(t, first))
	require.Equal(t, berth.RequestWaiting, b.status(t, second))
}

// Of a trial that was stopped early a search learns the last value that was judged.
func TestSuggest_OfStoppedTrials(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)
	token := b.place(t, r).Token

	for rung, value := range []*float64{new(0.25), new(0.75)} {
		_, err := b.store.JudgeRung(t.Context(), r.AttemptID, token, berth.RungReport{Rung: int64(rung), Step: int64(3 * rung), Value: value},
			func([]berth.RungValue) berth.StopDecision { return berth.StopDecision{Stop: rung == 1, Why: "worse"} })
		require.NoError(t, err)
	}

	rungs, err := b.store.ListRungs(t.Context(), r.TrialID)
	require.NoError(t, err)
	require.Len(t, rungs, 2)
	require.Equal(t, berth.Rung{Rung: 1, Step: 3, Value: new(0.75), Stop: true, Why: "worse", At: rungs[1].At}, rungs[1])

	changed, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{TrialID: r.TrialID, SweepID: b.sweep, State: berth.TrialPruned, Kind: berth.FailurePruned})
	require.NoError(t, err)
	require.True(t, changed)

	_, _, err = b.store.Suggest(t.Context(), b.sweep, 2, 1, berth.SearchNeeds{Past: true}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Equal(t, []berth.Observation{{
			Number: 1, Params: tried.Past[0].Params, State: berth.TrialPruned, Kind: berth.FailurePruned, Value: new(0.75), Step: 3, Results: berth.Results{},
		}}, tried.Past)

		return nil, true, nil
	})
	require.NoError(t, err)

	sweep, err := b.store.GetSweep(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, berth.Counts{Total: 1, Pruned: 1}, sweep.Counts)
	require.Nil(t, sweep.BestValue)
}

// A trial's results are those of its last attempt. The one without a value, which broke a
// constraint, is not the best.
func TestSetTrialState_KeepsResults(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.begin(t, berth.Spec{Name: "two", Objective: &berth.Objective{
		Metric: "acc", Goal: berth.GoalMinimize, Further: []berth.Objective{{Metric: "ms", Goal: berth.GoalMinimize}},
	}})

	for i, value := range []*float64{nil, new(0.75), new(0.5)} {
		r := b.request(t, gib)
		results := berth.Results{"acc": 0.75 - 0.25*float64(i), "ms": float64(i) / 3}
		b.place(t, r)
		b.finish(t, r, berth.Outcome{Kind: berth.FailureOK, Message: "finished", Value: value, Results: results})

		_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{TrialID: r.TrialID, SweepID: b.sweep, Number: r.Number, State: berth.TrialSucceeded, Value: value})
		require.NoError(t, err)

		trial, err := b.store.GetTrial(t.Context(), b.sweep, i+1)
		require.NoError(t, err)
		require.Equal(t, results, trial.Results)
		require.Equal(t, value, trial.Value)
	}

	sweep, err := b.store.GetSweep(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, 3, sweep.BestTrial)

	_, _, err = b.store.Suggest(t.Context(), b.sweep, 4, 1, berth.SearchNeeds{Past: true}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Len(t, tried.Past, 3)
		require.Equal(t, berth.Results{"acc": 0.25, "ms": 2.0 / 3}, tried.Past[2].Results)

		return nil, true, nil
	})
	require.NoError(t, err)
}

// A sweep has copies of earlier sweeps' trials, each with its loss: less is better. They stay
// when the earlier sweep is deleted.
func TestCreateSweep_CopiesPriors(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for range 4 {
		b.next(t, gib)
	}

	lessons, err := b.store.Lessons(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Empty(t, lessons, "nothing has ended")

	b.exec(t, "UPDATE trials SET state = 'succeeded', value = 0.5, finished_at = now() WHERE number = 1")
	b.exec(t, "UPDATE trials SET state = 'pruned', finished_at = now() WHERE number = 2")
	b.exec(t, "INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why) SELECT id, 0, sweep_id, 3, 0.25, true, 'worse' FROM trials WHERE number = 2")
	b.exec(t, "UPDATE trials SET state = 'infeasible', finished_at = now() WHERE number = 3")
	b.exec(t, "UPDATE trials SET state = 'failed', failure_kind = 'crashed', finished_at = now() WHERE number = 4")

	lessons, err = b.store.Lessons(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Len(t, lessons, 2)

	id := uuid.NewString()
	_, _, err = b.store.CreateSweep(t.Context(), berth.NewSweep{ID: id, Spec: berth.Spec{Name: "warm"}, ImageDigest: "sha256:x", CreatedBy: "local", From: []string{b.sweep}})
	require.NoError(t, err)
	b.exec(t, "DELETE FROM sweeps WHERE id = $1", b.sweep)

	clone := uuid.NewString()
	_, _, err = b.store.CreateSweep(t.Context(), berth.NewSweep{ID: clone, Spec: berth.Spec{Name: "warm"}, ImageDigest: "sha256:x", CreatedBy: "local", PriorsOf: id})
	require.NoError(t, err)
	require.Equal(t, 6, number[int](t, b.pool, "SELECT count(*) FROM priors WHERE sweep_id IN ($1, $2)", id, clone), "a clone learns from the same")

	_, _, err = b.store.Suggest(t.Context(), clone, 1, 1, berth.SearchNeeds{Past: true}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		require.Empty(t, tried.Past)
		require.Len(t, tried.Prior, 1)

		lr := berth.Assignment{"lr": berth.FloatValue(1e15)}
		require.Equal(t, []berth.Observation{
			{Number: 1, Params: lr, State: berth.TrialSucceeded, Value: new(-0.5)},
			{Number: 2, Params: lr, State: berth.TrialPruned, Value: new(-0.25), Step: 3},
			{Number: 3, Params: lr, State: berth.TrialInfeasible},
		}, tried.Prior[0])

		return nil, true, nil
	})
	require.NoError(t, err)
}

// A search that learns gets all trials before the sweep is locked. What it made is not stored
// when another call stored trials meanwhile, and trials that a restored database forgot end.
func TestSuggest_OfASearchThatLearns(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.next(t, gib)
	b.exec(t, "UPDATE trials SET state = 'succeeded', value = 0.5, finished_at = now()")

	trial := func(x float64) berth.NewTrial {
		return berth.NewTrial{ID: uuid.NewString(), Params: berth.Assignment{"lr": berth.FloatValue(x)}, Origin: berth.Origin{By: "tpe", Ended: 1, Known: "1"}}
	}
	suggest := func(first int, meanwhile func(), trials ...berth.NewTrial) ([]int, error) {
		numbers, _, err := b.store.Suggest(t.Context(), b.sweep, first, 2, berth.SearchNeeds{Past: true}, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
			require.Len(t, tried.Past, tried.Made)
			require.Equal(t, berth.TrialSucceeded, tried.Past[0].State)
			require.InDelta(t, 0.5, *tried.Past[0].Value, 0)
			meanwhile()

			return trials, false, nil
		})

		return numbers, err
	}

	_, err := suggest(2, func() {
		numbers, err := suggest(2, func() {}, trial(2), trial(3))
		require.NoError(t, err)
		require.Equal(t, []int{2, 3}, numbers)
	}, trial(7))
	require.NoError(t, err, "they are the trials that this call would have stored")
	require.Equal(t, berth.FloatValue(2), b.getTrial(t, 2).Params["lr"])
	require.Equal(t, berth.Origin{By: "tpe", Ended: 1, Known: "1"}, b.getTrial(t, 2).Origin)

	_, err = suggest(5, func() {
		_, err := suggest(4, func() {}, trial(4))
		require.NoError(t, err)
	}, trial(8))
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "made from what is not so any more")

	_, err = suggest(6, func() {}, berth.NewTrial{ID: uuid.NewString(), Params: berth.Assignment{}, Lost: "not known"})
	require.NoError(t, err)

	lost := b.getTrial(t, 5)
	require.Equal(t, berth.TrialCanceled, lost.State)
	require.Equal(t, "not known", lost.Message)
	require.NotNil(t, lost.FinishedAt)
}
