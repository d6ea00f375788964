package runtrial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Several metrics are wanted of a trial: each counts as its objective says, and one that is
// missing or beyond a bound is told by name.
func TestResults(t *testing.T) {
	t.Parallel()

	const all = "acc=0.5 ms=31\nacc=0.4 ms=30 recall=0.75\n"

	for name, c := range map[string]struct {
		printed     string
		constraints []berth.Constraint
		kind        berth.FailureKind
		value       *float64
		results     berth.Results
		says        string
	}{
		"none bound":         {all, nil, berth.FailureOK, new(0.5), berth.Results{"acc": 0.5, "ms": 30}, "finished"},
		"kept":               {all, []berth.Constraint{{Metric: "recall", Min: new(0.75)}}, berth.FailureOK, new(0.5), berth.Results{"acc": 0.5, "ms": 30, "recall": 0.75}, "finished"},
		"more than most":     {all, []berth.Constraint{{Metric: "ms", Max: new(20.0)}}, berth.FailureOK, nil, berth.Results{"acc": 0.5, "ms": 30}, "it breaks a constraint, so it is not ranked: its ms of 30 is more than 20"},
		"less than least":    {all, []berth.Constraint{{Metric: "recall", Max: new(1.0), Min: new(0.8)}}, berth.FailureOK, nil, berth.Results{"acc": 0.5, "ms": 30, "recall": 0.75}, "its recall of 0.75 is less than 0.8"},
		"second missing":     {"acc=0.5\n", nil, berth.FailureNoResult, nil, nil, `never reported "ms"`},
		"bound missing":      {all, []berth.Constraint{{Metric: "recal", Max: new(1.0)}}, berth.FailureNoResult, nil, nil, `never reported "recal"; it reported "acc", "ms", "recall"; did you mean ` + "`metric: recall`?"},
		"second infinite":    {"acc=0.5 ms=inf\n", nil, berth.FailureNotFinite, nil, nil, `ended with "ms" = inf`},
		"first not a number": {"acc=nan ms=1\n", nil, berth.FailureNotFinite, nil, nil, `ended with "acc" = nan`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.books.says(func(who *berth.Assignee) {
				who.Spec.Objective = &berth.Objective{
					Metric: "acc", Goal: berth.GoalMaximize, Strategy: berth.StrategyBest,
					Further: []berth.Objective{{Metric: "ms", Goal: berth.GoalMinimize, Strategy: berth.StrategyLast}},
				}
				who.Spec.Constraints = c.constraints
			})

			box, ended := r.begin(t)
			got := ends(t, box, ended, c.printed, 0)
			require.Equal(t, c.kind, got.Kind, got.Message)
			require.Equal(t, c.value, got.Value)
			require.Equal(t, c.results, got.Results)
			require.Contains(t, got.Message, c.says)
			require.Equal(t, got, r.books.result(t).Outcome)
		})
	}
}

// A bound on the objective itself: the trial is not ranked, and its number is kept.
func TestResults_ABoundOfTheObjective(t *testing.T) {
	t.Parallel()

	for printed, c := range map[string]struct {
		value   *float64
		results berth.Results
	}{
		"acc=0.5\n": {nil, berth.Results{"acc": 0.5}}, "acc=0.7\n": {new(0.7), nil},
	} {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) { who.Spec.Constraints = []berth.Constraint{{Metric: "acc", Min: new(0.6)}} })

		box, ended := r.begin(t)
		got := ends(t, box, ended, printed, 0)
		require.Equal(t, c.value, got.Value)
		require.Equal(t, c.results, got.Results)
	}
}

// A final record stands only when it has all that is wanted.
func TestResults_FinalWhenAllAre(t *testing.T) {
	t.Parallel()

	for printed, kind := range map[string]berth.FailureKind{
		`{"type": "final", "acc": 0.5, "ms": 3}` + "\n":   berth.FailureOK,
		`{"type": "final", "acc": 0.5}` + "\n" + "ms=3\n": berth.FailureUserError,
	} {
		r := setup(t)
		r.docks.exitCode = 1
		r.books.says(func(who *berth.Assignee) { who.Spec.Constraints = []berth.Constraint{{Metric: "ms", Max: new(20.0)}} })

		box, ended := r.begin(t)
		require.Equal(t, kind, ends(t, box, ended, printed, 1).Kind, printed)
	}
}
