package activities_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// slowTemporal takes 30 ms for a call, as Temporal Cloud does.
type slowTemporal struct {
	activities.Trials

	calls atomic.Int32
}

func (s *slowTemporal) EndedTrials(context.Context, string, []int) ([]berth.TrialEnd, error) {
	return []berth.TrialEnd{{Number: 1, State: berth.TrialFailed}}, nil
}

func (s *slowTemporal) SetTrialState(context.Context, berth.TrialUpdate) (bool, error) {
	return true, nil
}

func (*slowTemporal) JoinProbe(context.Context, string, string) error { return nil }

func (*slowTemporal) JoinStage(context.Context, string, string) error { return nil }

func (s *slowTemporal) TrialEnd(_ context.Context, sweepID string, number int) (*berth.TrialUpdate, error) {
	s.calls.Add(1)
	time.Sleep(30 * time.Millisecond)

	if number%2 == 1 {
		return nil, nil //nolint:nilnil // it goes on
	}

	return &berth.TrialUpdate{SweepID: sweepID, Number: number, State: berth.TrialSucceeded}, nil
}

// A slow Temporal gets many questions at once: one after another, 500 open trials
// would not fit in the time of a step.
func TestEndedTrials_AsksForManyAtOnce(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := &slowTemporal{}
		a := &activities.Activities{Trials: s, Workflows: s}

		numbers := sequence(1, berth.MaxOpenTrials)
		want := []berth.TrialEnd{{Number: 1, State: berth.TrialFailed}}

		for number := 2; number <= berth.MaxOpenTrials; number += 2 {
			want = append(want, berth.TrialEnd{Number: number, State: berth.TrialSucceeded})
		}

		began := time.Now()
		ended, err := a.EndedTrials(t.Context(), activities.EndedInput{SweepID: restoredID, Numbers: numbers, Closed: true})
		require.NoError(t, err)
		require.Equal(t, want, ended)
		require.EqualValues(t, berth.MaxOpenTrials-1, s.calls.Load(), "the database knows of the first")
		require.Equal(t, 32*30*time.Millisecond, time.Since(began), "16 at once")
	})
}
