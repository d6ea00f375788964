package activities_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/spec"
)

// shelf stores the trials of one sweep.
type shelf struct {
	activities.Sweeps
	activities.Placements

	spec   berth.Spec
	trials []berth.NewTrial
}

func (s *shelf) SweepRecord(context.Context, string) (berth.Sweep, error) {
	return berth.Sweep{Spec: s.spec}, nil
}

func (s *shelf) ListHosts(context.Context) ([]berth.Host, error) { return nil, nil }

func (s *shelf) Suggest(
	_ context.Context, _ string, first, _ int, _ bool,
	suggest func(int, []berth.Assignment) ([]berth.NewTrial, bool, error),
) (numbers []int, exhausted bool, err error) {
	var history []berth.Assignment
	for _, trial := range s.trials {
		history = append(history, trial.Params)
	}

	trials, exhausted, err := suggest(len(s.trials), history)
	s.trials = append(s.trials, trials...)

	for i := range trials {
		numbers = append(numbers, first+i)
	}

	return numbers, exhausted, err
}

func TestSuggestTrials_SaysWhyItEnds(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		more      string
		trials    int
		exhausted bool
		reason    string
	}{
		"max_trials": {"parameters: [{name: x, min: 1, max: 9}]\nlimits: {max_trials: 4}", 4, false, "limits.max_trials was reached"},
		"space":      {"parameters: [{name: x, min: 1, max: 3}]\nlimits: {max_trials: 4}", 3, true, "every combination was tried"},
		"forbid": {
			"parameters: [{name: x, min: 0.5, max: 1}]\nforbid: [x < 0.9999999]\nlimits: {max_trials: 4}", 0, true,
			"no further combination was found in 100,000 draws; forbid leaves too few",
		},
	} {
		s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train]\n"+test.more), "")
		require.NoError(t, err)

		store := &shelf{spec: s}
		a := &activities.Activities{Sweeps: store, Placements: store}

		var last activities.SuggestResult

		for last.Reason == "" {
			in := activities.SuggestInput{SweepID: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1", First: len(store.trials) + 1, Count: 2}
			last, err = a.SuggestTrials(t.Context(), in)
			require.NoError(t, err)
			require.True(t, last.Reason != "" || len(last.Numbers) > 0, "a search that goes on suggests something")
		}

		require.Len(t, store.trials, test.trials, name)
		require.Equal(t, test.exhausted, last.Exhausted, name)
		require.Equal(t, test.reason, last.Reason, name)
	}
}

// A database was restored from before trials 3 to 5, and the sweep goes on with
// trial 6: each number has the values that it always has.
func TestSuggestTrials_FillsWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	const id = "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1"

	s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train]\nparameters: [{name: x, min: 1, max: 9}]\n"), "")
	require.NoError(t, err)

	whole, restored := &shelf{spec: s}, &shelf{spec: s}

	for first := 1; first < 8; first += 2 {
		a := &activities.Activities{Sweeps: whole, Placements: whole}
		_, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: id, First: first, Count: 2})
		require.NoError(t, err)
	}

	restored.trials = slices.Clone(whole.trials[:2])
	a := &activities.Activities{Sweeps: restored, Placements: restored}
	_, err = a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: id, First: 6, Count: 3})
	require.NoError(t, err)
	require.Equal(t, whole.trials, restored.trials)
}

// ending is a sweep that ends while the database, which was restored, has some
// of its trials open. Of the first Temporal knows how it ended, the second was
// terminated, the third goes on.
type ending struct {
	activities.Sweeps
	activities.Trials
	activities.Workflows

	open  []berth.Trial
	ended []berth.TrialUpdate
	state berth.SweepState
}

func (e *ending) ListTrials(_ context.Context, _ string, states []string, after, limit int) ([]berth.Trial, error) {
	var page []berth.Trial

	for _, trial := range e.open {
		if trial.Number > after && len(page) < limit && slices.Contains(states, string(trial.State)) {
			page = append(page, trial)
		}
	}

	return page, nil
}

func (e *ending) TrialEnd(_ context.Context, sweepID string, number int) (*berth.TrialUpdate, error) {
	end := berth.TrialUpdate{SweepID: sweepID, Number: number, State: berth.TrialSucceeded, Kind: berth.FailureOK}

	switch number % 3 {
	case 0:
		return nil, nil //nolint:nilnil // it goes on
	case 2:
		end.State, end.Kind = berth.TrialCanceled, berth.FailureCanceled
	}

	return &end, nil
}

func (e *ending) SetTrialState(_ context.Context, u berth.TrialUpdate) (bool, error) {
	e.ended = append(e.ended, u)

	return true, nil
}

func (e *ending) GetSweep(context.Context, string) (berth.Sweep, error) {
	var succeeded int

	for _, u := range e.ended {
		if u.State == berth.TrialSucceeded {
			succeeded++
		}
	}

	return berth.Sweep{State: e.state, Counts: berth.Counts{Succeeded: succeeded}}, nil
}

func (e *ending) SetSweepState(_ context.Context, _ string, state berth.SweepState, _ string) (bool, error) {
	e.state = state

	return true, nil
}

// A sweep that ends leaves no trial open that a restored database believes to
// run: it ends as its workflow did, and counts.
func TestFinishSweep_EndsWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	const trials = 450 // more than are read at once

	e := &ending{}
	for n := range trials {
		e.open = append(e.open, berth.Trial{Number: n + 1, State: berth.TrialRunning})
	}

	a := &activities.Activities{Sweeps: e, Trials: e, Workflows: e}

	sweep, err := a.FinishSweep(t.Context(), activities.SweepStateInput{
		SweepID: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1", State: berth.SweepSucceeded, Reason: "every combination was tried",
	})
	require.NoError(t, err)
	require.Equal(t, berth.SweepSucceeded, sweep.State)
	require.Equal(t, trials/3, sweep.Counts.Succeeded)
	require.Len(t, e.ended, trials*2/3)

	for _, u := range e.ended {
		want := berth.TrialSucceeded
		if u.Number%3 == 2 {
			want = berth.TrialCanceled
		}

		require.Equal(t, want, u.State, "trial %d", u.Number)
	}
}
