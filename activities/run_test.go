package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

type executor func(ctx context.Context, order activities.Order) (berth.Outcome, error)

func (e executor) Run(ctx context.Context, order activities.Order, _ func(activities.Progress)) (berth.Outcome, error) {
	return e(ctx, order)
}

// An attempt that was canceled before may be given back by another activity,
// which nobody canceled.
func TestRunTrial_GivingBackSucceeds(t *testing.T) {
	t.Parallel()

	var suite testsuite.WorkflowTestSuite

	a := &activities.Activities{Executor: executor(func(_ context.Context, order activities.Order) (berth.Outcome, error) {
		require.True(t, order.Stop)

		return berth.Outcome{Kind: berth.FailureCanceled, Message: "canceled"}, nil
	})}
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)

	value, err := env.ExecuteActivity(a.RunTrial, activities.Order{AttemptID: "a", Token: 1, Stop: true})
	require.NoError(t, err)

	var outcome berth.Outcome
	require.NoError(t, value.Get(&outcome))
	require.Equal(t, berth.FailureCanceled, outcome.Kind)
}

func TestRunTrial_FailureIsNotRepeated(t *testing.T) {
	t.Parallel()

	var suite testsuite.WorkflowTestSuite

	a := &activities.Activities{Executor: executor(func(context.Context, activities.Order) (berth.Outcome, error) {
		return berth.Outcome{Kind: berth.FailureUserError, Message: "exit code 1"}, nil
	})}
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)

	_, err := env.ExecuteActivity(a.RunTrial, activities.Order{AttemptID: "a", Token: 1})

	outcome, ok := activities.OutcomeOf(err)
	require.True(t, ok)
	require.Equal(t, berth.FailureUserError, outcome.Kind)
}
