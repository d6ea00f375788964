package activities_test

import (
	"context"
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
	_ context.Context, _ string, first int, _ bool,
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
