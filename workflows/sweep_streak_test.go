package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/workflows"
)

// ends makes trials end as the letters say, in the order of their numbers: u and v
// failed with two exceptions, n without a result, c crashed, i is infeasible, p was
// stopped early, s succeeded. Trials after the last letter end as it says.
func ends(letters string) func(number int) berth.TrialEnd {
	return func(number int) berth.TrialEnd {
		switch letters[min(number, len(letters))-1] {
		case 'u':
			return failedEnd(number, berth.FailureUserError, fmt.Sprintf("KeyError: 'units', after %d.5e-3 s", number))
		case 'v':
			return failedEnd(number, berth.FailureUserError, "ValueError: no such optimizer")
		case 'n':
			return failedEnd(number, berth.FailureNoResult, "it reported no metric")
		case 'c':
			return failedEnd(number, berth.FailureCrashed, "aborted")
		case 'i':
			return berth.TrialEnd{Number: number, State: berth.TrialInfeasible, Kind: berth.FailureTooBig}
		case 'p':
			return berth.TrialEnd{Number: number, State: berth.TrialPruned, Kind: berth.FailurePruned}
		default:
			return berth.TrialEnd{Number: number, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(0.5)}
		}
	}
}

func failedEnd(number int, kind berth.FailureKind, message string) berth.TrialEnd {
	return berth.TrialEnd{Number: number, State: berth.TrialFailed, Kind: kind, Message: message}
}

// endsOneByOne runs a sweep of n trials, all open; one ends each minute, those named
// first before the others, which end by their numbers.
func (b *sweepBundle) endsOneByOne(t *testing.T, letters string, n int, first ...int) {
	t.Helper()

	carried := workflows.CarriedState{Created: n, Exhausted: true}
	order := slices.Clone(first)

	for number := 1; number <= n; number++ {
		carried.Open = append(carried.Open, number)

		if !slices.Contains(first, number) {
			order = append(order, number)
		}
	}

	for i, number := range order {
		b.hears(time.Duration(i+1)*time.Minute, ends(letters)(number))
	}

	require.NoError(t, b.carryOn(carried))
	require.True(t, b.env.IsWorkflowCompleted())
}

func TestSweep_PausesItselfWhenItsFirstTrialsFail(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		ends   string
		trials int
		reason string // empty = it does not pause
		first  []int  // end before the others
	}{
		"one exception":    {"u", 40, "the first 3 trials failed for one reason: KeyError: 'units', after 3.5e-3 s; to go on as it is: berth sweep resume ", nil},
		"no result":        {"n", 40, "the first 2 trials failed for one reason: it reported no metric; to go on", nil},
		"no result of 4":   {"n", 4, "the first 2 trials", nil},
		"no result of 3":   {"n", 3, "", nil},
		"two exceptions":   {"uuvuu", 40, "the first 5 trials all failed; the last, trial 5: KeyError", nil},
		"two kinds":        {"nunus", 40, "", nil},
		"crashed":          {"c", 40, "the first 5 trials all failed; the last, trial 5: aborted", nil},
		"one succeeded":    {"suuuuus", 40, "", nil},
		"every second":     {"susususususususususus", 40, "", nil}, // 10 of 20
		"most":             {"suusuusuusuusuususs", 40, "11 of the first 17 trials failed", nil},
		"infeasible":       {"i", 40, "", nil},
		"stopped early":    {"puuuup", 40, "", nil},
		"infeasible first": {"iiuuu", 40, "the first 3 trials failed", nil},
		"later":            {"ssssssssssssssssssssuuuuuuuuuuuuuuus", 40, "", nil},
		"few are left":     {"u", 5, "", nil},
		"enough are left":  {"u", 6, "the first 3", nil},
		"fail sooner":      {"sssuuus", 40, "", []int{4, 5, 6}},
		"most fail sooner": {"ssssssssssuuuuuuuuuus", 40, "", []int{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}},
		"first fails last": {"u", 40, "the first 3 trials failed for one reason: KeyError: 'units', after 3.5e-3 s", []int{2, 3, 4, 5}},
		"first runs long":  {"s" + strings.Repeat("u", 20), 40, "11 of the first 12 trials failed", []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.endsOneByOne(t, tt.ends, tt.trials, tt.first...)

			if tt.reason == "" {
				require.Empty(t, b.states)

				return
			}

			require.Len(t, b.states, 1)
			require.Equal(t, berth.SweepPaused, b.states[0].State)
			require.Contains(t, b.states[0].Reason, tt.reason)
		})
	}
}

// Once a person has looked and resumed it, a sweep goes on to its end.
func TestSweep_PausesItselfOnce(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	resumed := b.update(3*time.Minute+30*time.Second, workflows.UpdateResume)
	b.endsOneByOne(t, "u", 40)

	require.NoError(t, *resumed)
	require.Len(t, b.states, 2)
	require.Equal(t, berth.SweepRunning, b.states[1].State)
}

// What a sweep knows of its first trials is carried over.
func TestSweep_CarriesItsFailureStreak(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)

	for number, suggested := range map[int]bool{3: false, 4: true} {
		b.env.RegisterDelayedCallback(func() {
			b.env.SetContinueAsNewSuggested(suggested)
			b.env.SignalWorkflow(workflows.SignalTrialFinished, ends("u")(number))
		}, time.Duration(number)*time.Minute)
	}

	in := decodeNext[workflows.SweepInput](t, b.carryOn(workflows.CarriedState{
		Created: 10, Exhausted: true, Open: []int{3, 4, 5, 6, 7, 8, 9, 10}, Failed: 2,
		Streak: workflows.FailureStreak{Ends: map[int]berth.TrialEnd{1: ends("u")(1), 2: ends("u")(2)}},
	}))
	require.True(t, in.Carried.Paused)
	require.True(t, in.Carried.Streak.Told)
	require.Contains(t, in.Carried.Streak.Why, "the first 3 trials failed for one reason: KeyError")
}
