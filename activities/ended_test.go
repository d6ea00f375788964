package activities_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// slowTemporal answers none of the first 16 calls before all of them are in flight.
type slowTemporal struct {
	activities.Trials

	calls    atomic.Int32
	underWay atomic.Int32
	most     atomic.Int32
	all      chan struct{}
}

func (s *slowTemporal) EndedTrials(context.Context, string, []int) ([]berth.TrialEnd, error) {
	return []berth.TrialEnd{{Number: 1, State: berth.TrialFailed}}, nil
}

func (s *slowTemporal) SetTrialState(context.Context, berth.TrialUpdate) (bool, error) {
	return true, nil
}

func (*slowTemporal) JoinProbe(context.Context, string, string) error { return nil }

func (s *slowTemporal) TrialEnd(ctx context.Context, sweepID string, number int) (*berth.TrialUpdate, error) {
	now := s.underWay.Add(1)
	defer s.underWay.Add(-1)

	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}

	if s.calls.Add(1) == 16 {
		close(s.all)
	}

	select {
	case <-s.all:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if number%2 == 1 {
		return nil, nil //nolint:nilnil // it goes on
	}

	return &berth.TrialUpdate{SweepID: sweepID, Number: number, State: berth.TrialSucceeded}, nil
}

// A slow Temporal gets many questions at once: one after another, 500 open trials
// would not fit in the time of a step.
func TestEndedTrials_AsksForManyAtOnce(t *testing.T) {
	t.Parallel()

	s := &slowTemporal{all: make(chan struct{})}
	a := &activities.Activities{Trials: s, Workflows: s}

	numbers := make([]int, berth.MaxOpenTrials)
	want := []berth.TrialEnd{{Number: 1, State: berth.TrialFailed}}

	for i := range numbers {
		numbers[i] = i + 1

		if numbers[i]%2 == 0 {
			want = append(want, berth.TrialEnd{Number: numbers[i], State: berth.TrialSucceeded})
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	ended, err := a.EndedTrials(ctx, activities.EndedInput{SweepID: restoredID, Numbers: numbers, Closed: true})
	require.NoError(t, err)
	require.Equal(t, want, ended)
	require.EqualValues(t, berth.MaxOpenTrials-1, s.calls.Load(), "the database knows of the first")
	require.EqualValues(t, 16, s.most.Load())
}
