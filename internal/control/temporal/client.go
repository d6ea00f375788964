package temporal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// Client starts and steers workflows. Temporal's client is used only here.
type Client struct {
	temporal  client.Client
	namespace string
	queue     string // of the workflows that it starts
}

// NewClient wraps a connected Temporal client of a namespace. The workflows
// that it starts run on the queue of the installation.
func NewClient(c client.Client, namespace, installationID string) *Client {
	return &Client{temporal: c, namespace: namespace, queue: workflows.SharedQueue(installationID)}
}

// Namespace is where the workflows are.
func (c *Client) Namespace() string { return c.namespace }

// RegisterSearchAttributes makes the search attributes known to the namespace.
// Repeating it is harmless. Errors: unavailable while Temporal has them but
// still refuses workflows that use them: each of its processes reads the
// namespace's attributes again every few seconds.
func (c *Client) RegisterSearchAttributes(ctx context.Context) error {
	operator := c.temporal.OperatorService()

	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: c.namespace})
	if err != nil {
		return fmt.Errorf("listing search attributes of namespace %q: %w", c.namespace, err)
	}

	missing := workflows.SearchAttributes()
	for name := range known.GetCustomAttributes() {
		delete(missing, name)
	}

	if len(missing) == 0 {
		return c.usable(ctx)
	}

	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: c.namespace, SearchAttributes: missing,
	})

	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("registering search attributes in namespace %q: %w", c.namespace, err)
	}

	return c.usable(ctx)
}

// usable asks for a workflow that never is, by every search attribute: Temporal
// refuses the question as it would refuse the start of a workflow.
func (c *Client) usable(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(workflows.SearchAttributes()))
	query := "WorkflowId = 'berth-none' AND " + strings.Join(names, " IS NULL AND ") + " IS NULL"

	_, err := c.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: c.namespace, Query: query})

	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return berth.Errorf(berth.KindUnavailable, "namespace %q does not take Berth's search attributes yet: %w", c.namespace, err)
	}

	return translate(err, "asking by search attributes")
}

// StartSweep starts the workflow of a sweep; it does nothing for a running or ended
// one.
func (c *Client) StartSweep(ctx context.Context, sweepID string) error {
	return c.startSweep(ctx, workflows.SweepInput{SweepID: sweepID}, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
}

// signal sends a signal. A workflow that has ended needs none.
func (c *Client) signal(ctx context.Context, workflowID, name string, payload any) error {
	err := c.temporal.SignalWorkflow(ctx, workflowID, "", name, payload)

	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil
	}

	return translate(err, "signaling "+workflowID)
}

// TrialEnd is how the workflow of a trial ended; nil while it goes on.
func (c *Client) TrialEnd(ctx context.Context, sweepID string, number int) (*berth.TrialUpdate, error) {
	run, err := c.TrialRun(ctx, sweepID, number)
	if err != nil || run.Open {
		return nil, err
	}

	end := run.End()
	end.SweepID, end.Number = sweepID, number

	return &end, nil
}

// TrialRun is Temporal's state of the workflow of a trial.
type TrialRun struct {
	Known  bool                   // there is, or was, such a workflow
	Open   bool                   // it goes on
	Runs   bool                   // one of its attempts is, or will be, offered to a host
	Failed bool                   // it failed or timed out
	Result *workflows.TrialResult // of a completed one
}

// End is how a trial ends whose workflow does not go on: as that says itself,
// failed when its workflow failed, or canceled when that was ended from outside
// or is not there any more.
func (r TrialRun) End() berth.TrialUpdate {
	switch {
	case r.Result != nil:
		return berth.TrialUpdate{State: r.Result.State, Kind: r.Result.Kind, Message: r.Result.Message, Value: r.Result.Value}
	case r.Failed:
		return berth.TrialUpdate{State: berth.TrialFailed, Kind: berth.FailureInfra, Message: "its workflow failed; its page in Temporal says why"}
	default:
		return berth.TrialUpdate{State: berth.TrialCanceled, Kind: berth.FailureCanceled, Message: activities.EndedInTemporal}
	}
}

// TrialRun looks up the workflow of a trial.
func (c *Client) TrialRun(ctx context.Context, sweepID string, number int) (TrialRun, error) {
	id := workflows.TrialWorkflowID(sweepID, number)

	got, err := c.describe(ctx, id)
	if err != nil || got == nil {
		return TrialRun{}, err
	}

	status := got.GetWorkflowExecutionInfo().GetStatus()
	run := TrialRun{
		Known: true, Open: goesOn(status), Runs: len(got.GetPendingActivities()) > 0,
		Failed: status == enums.WORKFLOW_EXECUTION_STATUS_FAILED || status == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
	}

	if status != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return run, nil
	}

	run.Result = new(workflows.TrialResult)

	return run, translate(c.temporal.GetWorkflow(ctx, id, "").Get(ctx, run.Result), "reading the result of "+id)
}

// describe is Temporal's description of the newest run of a workflow; nil when
// it knows none any more.
func (c *Client) describe(ctx context.Context, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	got, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}

	return got, translate(err, "looking up "+id)
}

// status is the status of the newest run of a workflow; unspecified when
// Temporal knows none any more.
func (c *Client) status(ctx context.Context, id string) (enums.WorkflowExecutionStatus, error) {
	got, err := c.describe(ctx, id)

	return got.GetWorkflowExecutionInfo().GetStatus(), err
}

// goesOn reports whether a workflow goes on, also one that a person has paused
// in Temporal.
func goesOn(status enums.WorkflowExecutionStatus) bool {
	return status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enums.WORKFLOW_EXECUTION_STATUS_PAUSED ||
		status == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}

// JoinProbe starts the probe of a shape, or joins the running one.
func (c *Client) JoinProbe(ctx context.Context, shapeKey, trialWorkflowID string) error {
	id := workflows.ProbeWorkflowID(shapeKey)
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, workflows.SignalWant, workflows.ProbeWanted{WorkflowID: trialWorkflowID},
		client.StartWorkflowOptions{
			ID: id, TaskQueue: c.queue,
			StaticSummary:         "memory probe of shape " + berth.ShortKey(shapeKey),
			TypedSearchAttributes: workflows.ProbeAttributes(shapeKey),
		}, workflows.ProbeWorkflow, workflows.ProbeInput{ShapeKey: shapeKey})

	return translate(err, "joining probe of shape "+berth.ShortKey(shapeKey))
}

// JoinStage starts the election of the trial that runs a stage, or joins the running one.
func (c *Client) JoinStage(ctx context.Context, key, trialWorkflowID string) error {
	id := workflows.StageWorkflowID(key)
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, workflows.SignalWant, workflows.ProbeWanted{WorkflowID: trialWorkflowID},
		client.StartWorkflowOptions{ID: id, TaskQueue: c.queue, StaticSummary: "stage " + berth.ShortKey(key)},
		workflows.StageWorkflow, workflows.ProbeInput{StageKey: key})

	return translate(err, "joining stage "+berth.ShortKey(key))
}

// A sweep that has just been made does not know its updates until its workflow has
// begun, which takes a moment, or longer on a busy machine.
const (
	beginsWithin = 10 * time.Second
	beginsLook   = 100 * time.Millisecond
	// unknownUpdate begins the SDK's error for an update without a handler.
	unknownUpdate = "unknown update "
)

// Update sends one of the sweep updates and waits for its answer. Errors:
// conflict or invalid with the validator's reason; not_found when the sweep's
// workflow has ended; unavailable when it does not begin.
func (c *Client) Update(ctx context.Context, sweepID, update string, args ...any) (workflows.SweepView, error) {
	for giveUp := time.Now().Add(beginsWithin); ; {
		view, err := c.update(ctx, sweepID, update, args)

		refused, ok := errors.AsType[*temporal.ApplicationError](err)

		switch {
		case err == nil:
			return view, nil
		case !ok:
			return view, translate(err, update+" of sweep "+sweepID)
		case !strings.HasPrefix(refused.Message(), unknownUpdate):
			return view, berth.Errorf(berth.KindConflict, "%s", refused.Message())
		case time.Now().After(giveUp):
			return view, berth.Errorf(berth.KindUnavailable, "%s of sweep %s: its workflow has not begun yet; try again in a moment", update, sweepID)
		}

		select {
		case <-time.After(beginsLook):
		case <-ctx.Done():
			return view, context.Cause(ctx)
		}
	}
}

func (c *Client) update(ctx context.Context, sweepID, update string, args []any) (workflows.SweepView, error) {
	var view workflows.SweepView

	handle, err := c.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflows.SweepWorkflowID(sweepID), UpdateName: update, Args: args,
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &view)
	}

	return view, err
}

// Cancel cancels a sweep: its containers are stopped. Errors: not_found.
func (c *Client) Cancel(ctx context.Context, sweepID string) error {
	return translate(c.temporal.CancelWorkflow(ctx, workflows.SweepWorkflowID(sweepID), ""), "canceling sweep "+sweepID)
}

// Ping reports whether Temporal answers.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.temporal.CheckHealth(ctx, &client.CheckHealthRequest{})

	return translate(err, "asking Temporal")
}

// translate turns one of Temporal's errors into Berth's.
func translate(err error, doing string) error {
	var (
		gone    *serviceerror.NotFound
		invalid *serviceerror.InvalidArgument
	)

	switch {
	case err == nil:
		return nil
	case errors.As(err, &gone):
		return berth.Errorf(berth.KindNotFound, "%s: its workflow has ended or does not exist: %w", doing, err)
	case errors.As(err, &invalid):
		return berth.Errorf(berth.KindInternal, "%s: %w", doing, err)
	default:
		return berth.Errorf(berth.KindUnavailable, "%s: %w", doing, err)
	}
}
