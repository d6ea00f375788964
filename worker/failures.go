package worker

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// LogFailures logs failures that the SDK does not log: a failed step, run as a
// local activity, that is tried again, maybe for ever, and a workflow that
// ended with an error.
func LogFailures() interceptor.WorkerInterceptor { return &logFailures{} }

type logFailures struct {
	interceptor.WorkerInterceptorBase
}

func (*logFailures) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &stepFailures{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

func (*logFailures) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &workflowFailures{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type stepFailures struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity logs the failure of a step; other activities the SDK logs.
func (s *stepFailures) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := s.Next.ExecuteActivity(ctx, in)
	if err != nil && activity.GetInfo(ctx).IsLocalActivity {
		activity.GetLogger(ctx).Warn("step failed", "error", err)
	}

	return result, err
}

type workflowFailures struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow logs the failure of a workflow, unless it is being replayed.
func (w *workflowFailures) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := w.Next.ExecuteWorkflow(ctx, in)
	if err != nil && !workflow.IsContinueAsNewError(err) && !temporal.IsCanceledError(err) {
		workflow.GetLogger(ctx).Error("workflow failed", "error", err)
	}

	return result, err
}
