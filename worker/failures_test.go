package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/worker"
	"github.com/berthml/berth/workflows"
)

func TestLogFailures_TellsOfStepsAndWorkflows(t *testing.T) {
	t.Parallel()

	var (
		said  bytes.Buffer
		suite testsuite.WorkflowTestSuite
		a     *activities.Activities
		tries int
	)

	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))))

	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{worker.LogFailures()}})
	env.RegisterActivity(&activities.Activities{})
	env.OnActivity(a.BeginSweep, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.SweepRun) (activities.SweepPlan, error) {
			if tries++; tries == 1 {
				return activities.SweepPlan{}, errors.New("PostgreSQL is away")
			}

			return activities.SweepPlan{}, temporal.NewNonRetryableApplicationError("no such sweep", "not_found", nil)
		})

	env.ExecuteWorkflow(workflows.SweepWorkflow, workflows.SweepInput{SweepID: "s"})
	require.ErrorContains(t, env.GetWorkflowError(), "no such sweep")
	require.Contains(t, said.String(), `msg="step failed"`)
	require.Contains(t, said.String(), "PostgreSQL is away")
	require.Contains(t, said.String(), `msg="workflow failed"`)
}
