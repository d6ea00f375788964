package temporal_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"

	"github.com/berthml/berth/internal/temporal"
	"github.com/berthml/berth/workflows"
)

// A trial whose workflow a person has paused in Temporal has not ended. The
// development server cannot pause one, so its answers are made up.
func TestTrialClosed(t *testing.T) {
	t.Parallel()

	open := []enums.WorkflowExecutionStatus{
		enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_PAUSED, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
	}

	for number, name := range enums.WorkflowExecutionStatus_name {
		server := mocks.NewClient(t)
		server.On("DescribeWorkflowExecution", mock.Anything, workflows.TrialWorkflowID(sweepID, 1), "").Return(
			&workflowservice.DescribeWorkflowExecutionResponse{
				WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WorkflowExecutionStatus(number)},
			}, nil)

		closed, err := temporal.NewClient(server, "default", "i").TrialClosed(t.Context(), sweepID, 1)
		require.NoError(t, err)
		require.NotEqual(t, closed, slices.Contains(open, enums.WorkflowExecutionStatus(number)), name)
	}

	for _, answer := range []struct {
		err    error
		closed bool
	}{{serviceerror.NewNotFound("gone"), true}, {serviceerror.NewUnavailable("down"), false}} {
		server := mocks.NewClient(t)
		server.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(nil, answer.err)

		closed, err := temporal.NewClient(server, "default", "i").TrialClosed(t.Context(), sweepID, 1)
		require.Equal(t, answer.closed, closed)
		require.Equal(t, answer.closed, err == nil)
	}
}
