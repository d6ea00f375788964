package temporal_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	sdk "go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/workflows"
)

// operator is a Temporal that has all search attributes in its store.
type operator struct {
	operatorservice.OperatorServiceClient
}

func (operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: workflows.SearchAttributes()}, nil
}

// The full server takes attributes into use seconds after it has stored them:
// `berth restore` failed in a namespace that was just made.
func TestRegisterSearchAttributes_WaitsUntilTheyCanBeUsed(t *testing.T) {
	t.Parallel()

	server := mocks.NewClient(t)
	server.On("OperatorService").Return(operator{})

	uses := mock.MatchedBy(func(request *workflowservice.CountWorkflowExecutionsRequest) bool {
		for name := range workflows.SearchAttributes() {
			if !strings.Contains(request.GetQuery(), name+" IS NULL") {
				return false
			}
		}

		return request.GetNamespace() == "default"
	})
	server.On("CountWorkflow", mock.Anything, uses).Return(nil, serviceerror.NewInvalidArgument("no mapping")).Once()
	server.On("CountWorkflow", mock.Anything, uses).Return(&workflowservice.CountWorkflowExecutionsResponse{}, nil).Once()

	client := temporal.NewClient(server, "default", "i")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(client.RegisterSearchAttributes(t.Context())), "the caller asks again")
	require.NoError(t, client.RegisterSearchAttributes(t.Context()))
}

// A trial whose workflow a person has paused in Temporal has not ended. The
// development server cannot pause one, so its answers are made up.
func TestTrialEnd(t *testing.T) {
	t.Parallel()

	value := 0.5
	open := []enums.WorkflowExecutionStatus{
		enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_PAUSED, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
	}
	broke := []enums.WorkflowExecutionStatus{enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT}
	canceled := &berth.TrialUpdate{
		SweepID: sweepID, Number: 1, State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: activities.EndedInTemporal,
	}
	broken := &berth.TrialUpdate{
		SweepID: sweepID, Number: 1, State: berth.TrialFailed, Kind: berth.FailureInfra, Message: "its workflow failed; its page in Temporal says why",
	}
	failed := &berth.TrialUpdate{
		SweepID: sweepID, Number: 1, State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "exit code 1", Value: &value,
	}

	for number, name := range enums.WorkflowExecutionStatus_name {
		status := enums.WorkflowExecutionStatus(number)

		server := mocks.NewClient(t)
		server.On("DescribeWorkflowExecution", mock.Anything, workflows.TrialWorkflowID(sweepID, 1), "").Return(
			&workflowservice.DescribeWorkflowExecutionResponse{
				WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status},
			}, nil)

		want := canceled

		switch {
		case slices.Contains(open, status):
			want = nil
		case slices.Contains(broke, status):
			want = broken
		case status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			want = failed
			run := mocks.NewWorkflowRun(t)
			run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
				*args.Get(1).(*workflows.TrialResult) = workflows.TrialResult{ //nolint:forcetypeassert // what TrialRun asks for
					State: want.State, Kind: want.Kind, Message: want.Message, Value: want.Value,
				}
			}).Return(nil)
			server.On("GetWorkflow", mock.Anything, workflows.TrialWorkflowID(sweepID, 1), "").Return(run)
		}

		end, err := temporal.NewClient(server, "default", "i").TrialEnd(t.Context(), sweepID, 1)
		require.NoError(t, err)
		require.Equal(t, want, end, name)
	}

	for _, answer := range []struct {
		err error
		end *berth.TrialUpdate
	}{{serviceerror.NewNotFound("gone"), canceled}, {serviceerror.NewUnavailable("down"), nil}} {
		server := mocks.NewClient(t)
		server.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(nil, answer.err)

		end, err := temporal.NewClient(server, "default", "i").TrialEnd(t.Context(), sweepID, 1)
		require.Equal(t, answer.end, end)
		require.Equal(t, answer.end != nil, err == nil)
	}
}

// A sweep may be paused as soon as it is made, before its workflow has begun.
func TestUpdate_WaitsUntilTheWorkflowHasBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unknown := sdk.NewApplicationError("unknown update pause. KnownUpdates=[]", "")
		server := mocks.NewClient(t)
		done := mocks.NewWorkflowUpdateHandle(t)
		done.On("Get", mock.Anything, mock.Anything).Return(nil)
		server.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(nil, unknown).Times(3)
		server.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(done, nil).Once()

		_, err := temporal.NewClient(server, "default", "i").Update(t.Context(), sweepID, workflows.UpdatePause)
		require.NoError(t, err)

		server = mocks.NewClient(t)
		server.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(nil, unknown)
		_, err = temporal.NewClient(server, "default", "i").Update(t.Context(), sweepID, workflows.UpdatePause)
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "it never begins: %v", err)

		server = mocks.NewClient(t)
		server.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(nil, sdk.NewApplicationError("the sweep has ended", "")).Once()
		_, err = temporal.NewClient(server, "default", "i").Update(t.Context(), sweepID, workflows.UpdatePause)
		require.Equal(t, berth.KindConflict, berth.KindOf(err))
	})
}
