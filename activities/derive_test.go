package activities_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// ledgerWorld stores suggestions, loses answers, and forgets what a worker that died had
// chosen. Trials that were stored run on.
type ledgerWorld struct {
	shelf

	random *rand.Rand
	past   []berth.Observation
}

// Suggest stores trials once, when nothing is lost.
func (w *ledgerWorld) Suggest(
	_ context.Context, _ string, first, count int, _ berth.SearchNeeds, suggest func(berth.Tried) ([]berth.NewTrial, bool, error),
) (numbers []int, exhausted bool, err error) {
	if len(w.past) >= first { // a retry: the trials are there
		return sequence(first, min(len(w.past), first+count-1)), false, nil
	}

	tried := triedOf(w.past)

	trials, exhausted, err := suggest(tried)
	if err != nil || w.random.IntN(8) == 0 { // the worker died before it stored them
		return nil, false, berth.Errorf(berth.KindUnavailable, "lost: %w", err)
	}

	for _, t := range trials {
		w.trials = append(w.trials, t)
		w.past = append(w.past, berth.Observation{Number: len(w.past) + 1, Params: t.Params, State: berth.TrialPending})
	}

	if w.random.IntN(8) == 0 { // the answer was lost
		return nil, false, berth.Errorf(berth.KindUnavailable, "the answer was lost")
	}

	return sequence(first, len(w.past)), exhausted, nil
}

func triedOf(past []berth.Observation) berth.Tried {
	tried := berth.Tried{Made: len(past), Past: slices.Clone(past), Seen: func([]string) (map[string]bool, error) {
		seen := make(map[string]bool)
		for _, o := range past {
			seen[o.Params.Key()] = true
		}

		return seen, nil
	}}
	if len(past) > 0 {
		tried.Last = past[len(past)-1].Params
	}

	return tried
}

// goOn moves some trials a step further.
func (w *ledgerWorld) goOn() {
	for i := range w.past {
		o := &w.past[i]
		if o.State.Terminal() || w.random.IntN(3) > 0 {
			continue
		}

		if o.State != berth.TrialRunning {
			o.State = berth.TrialRunning

			continue
		}

		x, _ := o.Params["x"].Number()

		switch w.random.IntN(10) {
		case 0:
			o.State, o.Kind = berth.TrialInfeasible, berth.FailureTooBig
		case 1:
			o.State, o.Kind = berth.TrialFailed, berth.FailureUserError
		case 2:
			o.State = berth.TrialCanceled
		case 3, 4:
			o.State, o.Kind, o.Value, o.Step = berth.TrialPruned, berth.FailurePruned, new(x-1), 3
		default:
			o.State, o.Kind, o.Value = berth.TrialSucceeded, berth.FailureOK, new(x)
		}
	}
}

// numbersOf are the numbers of a text such as "1-3,7".
func numbersOf(t *testing.T, text string) (numbers []int) {
	t.Helper()

	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}

		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		require.NoError(t, err)

		to := from
		if ranged {
			to, err = strconv.Atoi(high)
			require.NoError(t, err)
		}

		numbers = append(numbers, sequence(from, to)...)
	}

	return numbers
}

// Each trial of a search that learns can be derived from what the ledger keeps: the trials
// before it. Its origin says which of them had ended.
func TestSuggestTrials_AreDerivedAgain(t *testing.T) {
	t.Parallel()

	for world := range 1000 {
		algorithm := "tpe"
		if world%10 == 0 { // slower
			algorithm = "gp"
		}

		s, err := spec.Decode([]byte(fmt.Sprintf("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters:\n"+
			"  - {name: x, min: 0.1, max: 9, log: true}\n  - {name: batch, values: [8, 16, 32], memory: true}\n  - {name: opt, values: [adam, sgd]}\n"+
			"  - {name: momentum, min: 0, max: 1, when: {opt: sgd}}\nforbid: [\"x > 8 && batch == 32\"]\nobjective: {metric: m}\n"+
			"search: {algorithm: %s, startup: 3, seed: %d}\nlimits: {max_trials: 9}\n", algorithm, world)), "")
		require.NoError(t, err)

		w := &ledgerWorld{random: rand.New(rand.NewPCG(uint64(world), 1))}
		w.spec = s
		a := &activities.Activities{Sweeps: w, Placements: w, Trials: unmeasured{}}

		for tries := 0; len(w.past) < 9; tries++ {
			require.Less(t, tries, 1000)
			_, _ = a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: len(w.past) + 1, Count: 1 + w.random.IntN(4)})
			w.goOn()
		}

		searcher, err := search.New(s)
		require.NoError(t, err)

		for i, stored := range w.trials {
			past := slices.Clone(w.past[:i])
			known := numbersOf(t, stored.Origin.Known)

			for j := range past {
				if !slices.Contains(known, past[j].Number) {
					past[j] = berth.Observation{Number: past[j].Number, Params: past[j].Params, State: berth.TrialRunning}
				}
			}

			again, _, err := searcher.Next(triedOf(past), 1)
			require.NoError(t, err)
			require.Equal(t, stored.Params, again[0].Values, "world %d, trial %d", world, i+1)
			require.Equal(t, stored.Origin.By, again[0].Origin.By)
		}
	}
}
