package insight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestMake(t *testing.T) {
	t.Parallel()

	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ended := func(number, minute int, value float64, state berth.TrialState, by string) Trial {
		return Trial{Number: number, State: state, Value: &value, By: by, FinishedAt: new(start.Add(time.Duration(minute) * time.Minute))}
	}

	in := Input{Objective: &minimize, From: 1, Trials: []Trial{
		ended(1, 9, 0.2, berth.TrialSucceeded, "sobol"), ended(2, 5, 0.7, berth.TrialSucceeded, "sobol"), ended(3, 4, 0.5, berth.TrialSucceeded, "gp"),
		ended(4, 9, 0.1, berth.TrialPruned, "gp"), ended(5, 9, 0.2, berth.TrialSucceeded, "gp"),
		{Number: 6, State: berth.TrialRunning, By: "enqueue"},
	}}
	want := Insight{
		Trials: 6, Sample: Sample{Trials: 4, Problem: "This needs 20 trials with a value; there are 4. With fewer, chance decides."},
		Best:    []Step{{3, 0.5, start.Add(4 * time.Minute)}, {1, 0.2, start.Add(9 * time.Minute)}},
		Origins: []Origin{{"gp", 3}, {"sobol", 2}, {"enqueue", 1}},
	}
	require.Equal(t, want, Make(in), "a pruned trial is not the best, and of two that ended at once the lower number is")
	require.Equal(t, 1, in.Trials[0].Number, "the input stays as it is")

	in.Objective = &berth.Objective{Metric: "loss", Goal: berth.GoalMinimize, Further: []berth.Objective{{Metric: "recall", Goal: berth.GoalMaximize}}}
	for i, recall := range []float64{0.5, 0.9, 0.4, 1, 0.5} {
		in.Trials[i].Results = berth.Results{"loss": *in.Trials[i].Value, "recall": recall}
	}

	numbers := []int{}
	for _, trial := range Make(in).Front {
		numbers = append(numbers, trial.Number)
	}

	require.Equal(t, []int{1, 5, 2}, numbers, "3 is worse than 1 in both, and 4 was stopped early")

	in.Objective = nil
	want.Best, want.Sample = nil, Sample{Problem: "The sweep has no objective."}
	require.Equal(t, want, Make(in))
}
