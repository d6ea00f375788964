package activities_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

type executor func(ctx context.Context, order berth.Order) (berth.Outcome, error)

func (e executor) Run(ctx context.Context, order berth.Order) (berth.Outcome, error) {
	return e(ctx, order)
}

// runs executes an order by an executor that answers so.
func runs(t *testing.T, trials activities.Trials, order berth.Order, answer executor) (outcome berth.Outcome, err error) {
	t.Helper()

	var suite testsuite.WorkflowTestSuite

	a := &activities.Activities{Trials: trials, Executor: answer}
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)

	value, err := env.ExecuteActivity(a.RunTrial, order)
	if err == nil {
		require.NoError(t, value.Get(&outcome))
	}

	return outcome, err
}

// An attempt canceled before may be given back by another activity, which was
// not canceled.
func TestRunTrial_GivingBackSucceeds(t *testing.T) {
	t.Parallel()

	outcome, err := runs(t, nil, berth.Order{AttemptID: "a", Token: 1, Stop: true}, func(_ context.Context, order berth.Order) (berth.Outcome, error) {
		require.True(t, order.Stop)

		return berth.Outcome{Kind: berth.FailureCanceled, Message: "canceled"}, nil
	})
	require.NoError(t, err)
	require.Equal(t, berth.FailureCanceled, outcome.Kind)
}

func TestRunTrial_FailureIsNotRepeated(t *testing.T) {
	t.Parallel()

	_, err := runs(t, nil, berth.Order{AttemptID: "a", Token: 1}, func(context.Context, berth.Order) (berth.Outcome, error) {
		return berth.Outcome{Kind: berth.FailureUserError, Message: "exit code 1"}, nil
	})

	outcome, ok := activities.OutcomeOf(err)
	require.True(t, ok)
	require.Equal(t, berth.FailureUserError, outcome.Kind)
}

// A trial that was stopped early ended as it should.
func TestRunTrial_StoppedEarly(t *testing.T) {
	t.Parallel()

	outcome, err := runs(t, nil, berth.Order{AttemptID: "a", Token: 1}, func(context.Context, berth.Order) (berth.Outcome, error) {
		return berth.Outcome{Kind: berth.FailurePruned, Message: "stopped early"}, nil
	})
	require.NoError(t, err)
	require.Equal(t, berth.FailurePruned, outcome.Kind)
}

// letting records which attempts are fenced.
type letting struct {
	activities.Trials

	abandoned []string
}

func (l *letting) AbandonAttempt(_ context.Context, id, _ string) error {
	l.abandoned = append(l.abandoned, id)

	return nil
}

// A cancellation does not wait for a Docker that does not answer: the attempt
// is fenced, for the reconciler to stop.
func TestRunTrial_CancellationDoesNotWaitForDocker(t *testing.T) {
	t.Parallel()

	trials := &letting{}
	outcome, err := runs(t, trials, berth.Order{AttemptID: "a", Token: 1, Stop: true}, func(context.Context, berth.Order) (berth.Outcome, error) {
		return berth.Outcome{}, fmt.Errorf("%w: hangs", berth.ErrNotStopped)
	})
	require.NoError(t, err)
	require.Equal(t, berth.FailureCanceled, outcome.Kind)
	require.Contains(t, outcome.Message, "Docker on the host does not answer")
	require.Equal(t, []string{"a"}, trials.abandoned)
}

// A container that ran too long and could not be stopped was canceled by
// nothing: the activity is repeated, and the attempt stays.
func TestRunTrial_OnlyACancellationLetsGo(t *testing.T) {
	t.Parallel()

	trials := &letting{}
	_, err := runs(t, trials, berth.Order{AttemptID: "a", Token: 1}, func(context.Context, berth.Order) (berth.Outcome, error) {
		return berth.Outcome{}, fmt.Errorf("%w: %w", berth.ErrNotStopped, berth.Errorf(berth.KindUnavailable, "hangs"))
	})

	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.False(t, app.NonRetryable())
	require.Equal(t, string(berth.KindUnavailable), app.Type())
	require.Empty(t, trials.abandoned)
}

// forgetful is a ledger that was restored from an older copy: it does not know
// the attempt.
type forgetful struct{ activities.Trials }

func (forgetful) AbandonAttempt(context.Context, string, string) error { return nil }

func (forgetful) RefuseAttempt(context.Context, string, string) error { return nil }

func (forgetful) GetAttempt(_ context.Context, id string) (berth.Attempt, error) {
	return berth.Attempt{}, berth.Errorf(berth.KindNotFound, "reading attempt %s: no such row", id)
}

// An attempt that a restored database does not know holds nothing there: its
// trial goes on with the next one, and does not fail.
func TestAbandonAttempt_UnknownToARestoredDatabase(t *testing.T) {
	t.Parallel()

	a := &activities.Activities{Trials: forgetful{}}

	for _, refused := range []bool{false, true} {
		abandoned, err := a.AbandonAttempt(t.Context(), activities.AbandonInput{AttemptID: "a", Message: "its host did not answer", Refused: refused})
		require.NoError(t, err)
		require.Nil(t, abandoned.Finished)
	}
}
