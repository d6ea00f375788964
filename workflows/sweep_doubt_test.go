package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/workflows"
)

// ends makes trials end as the letters say, in the order of their numbers: u
// and c failed with user_error and crashed, i is infeasible, s succeeded. What
// comes after the last letter ends as that does.
func ends(letters string) func(number int) berth.TrialEnd {
	return func(number int) berth.TrialEnd {
		switch letters[min(number, len(letters))-1] {
		case 'u':
			return berth.TrialEnd{Number: number, State: berth.TrialFailed, Kind: berth.FailureUserError}
		case 'c':
			return berth.TrialEnd{Number: number, State: berth.TrialFailed, Kind: berth.FailureCrashed}
		case 'i':
			return berth.TrialEnd{Number: number, State: berth.TrialInfeasible, Kind: berth.FailureTooBig}
		default:
			return berth.TrialEnd{Number: number, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: new(0.5)}
		}
	}
}

// endsOneByOne runs a sweep of n trials, all open; one ends each minute.
func (b *sweepBundle) endsOneByOne(t *testing.T, letters string, n int) {
	t.Helper()

	carried := workflows.CarriedState{Created: n, Exhausted: true}
	for number := 1; number <= n; number++ {
		carried.Open = append(carried.Open, number)
		b.hears(time.Duration(number)*time.Minute, ends(letters)(number))
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
	}{
		"all alike":        {"u", 40, "the first 5 trials all failed with user_error; look at the message and the log of trial 5"},
		"one succeeded":    {"suuuuus", 40, ""},
		"of two kinds":     {"uuuucuuuuuus", 40, "11 of the first 11 trials failed"},
		"every second":     {"susususususususususus", 40, ""}, // 10 of 20
		"most":             {"suusuusuusuusuususs", 40, "11 of the first 17 trials failed"},
		"infeasible":       {"i", 40, ""},
		"infeasible first": {"iiuuuuu", 40, "the first 5 trials all failed"},
		"later":            {"ssssssssssssssssssssuuuuuuuuuuuuuuus", 40, ""},
		"few are left":     {"u", 9, ""},
		"enough are left":  {"u", 10, "the first 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := sweepSetup(t)
			b.endsOneByOne(t, tt.ends, tt.trials)

			if tt.reason == "" {
				require.Empty(t, b.states)

				return
			}

			require.Len(t, b.states, 1)
			require.Equal(t, berth.SweepPaused, b.states[0].State)
			require.Contains(t, b.states[0].Reason, tt.reason)
			require.Contains(t, b.states[0].Reason, "resume the sweep")
		})
	}
}

// Once a person has looked and resumed it, a sweep goes on to its end.
func TestSweep_PausesItselfOnce(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)
	resumed := b.update(5*time.Minute+30*time.Second, workflows.UpdateResume)
	b.endsOneByOne(t, "u", 40)

	require.NoError(t, *resumed)
	require.Len(t, b.states, 2)
	require.Equal(t, berth.SweepRunning, b.states[1].State)
}

// What a sweep knows of its first trials is carried over.
func TestSweep_DoubtsAcrossRuns(t *testing.T) {
	t.Parallel()

	b := sweepSetup(t)

	for number, suggested := range map[int]bool{5: false, 6: true} {
		b.env.RegisterDelayedCallback(func() {
			b.env.SetContinueAsNewSuggested(suggested)
			b.env.SignalWorkflow(workflows.SignalTrialFinished, ends("u")(number))
		}, time.Duration(number)*time.Minute)
	}

	in := decodeNext[workflows.SweepInput](t, b.carryOn(workflows.CarriedState{
		Created: 12, Exhausted: true, Open: []int{5, 6, 7, 8, 9, 10, 11, 12}, Failed: 4,
		Doubt: workflows.Doubt{Ended: 4, Failed: 4, Alike: 4, Kind: berth.FailureUserError, Trial: 4},
	}))
	require.True(t, in.Carried.Paused)
	require.True(t, in.Carried.Doubt.Told)
	require.Contains(t, in.Carried.Doubt.Why, "the first 5 trials all failed with user_error")
}
