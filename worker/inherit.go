package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/workflows"
)

// A worker that was killed leaves activities that Temporal believes are
// running, until their heartbeat times out. Its successor, which owns the
// host's claim, knows better: it fails them by id, so that Temporal offers them
// to it at once, and their containers are adopted or collected. What it cannot
// tell Temporal in time, the heartbeat timeout does.

const (
	// inheritTimeout bounds one look. Temporal answers such questions within
	// milliseconds; what is not told by then is told by the next look.
	inheritTimeout = 10 * time.Second
	// inheritAtOnce is how many workflows are asked about at once.
	inheritAtOnce = 16
	// takeOverDelay is the pause before Temporal offers a failed activity
	// again. Zero would mean the retry policy's first interval.
	takeOverDelay = time.Millisecond
	// stickyLooked is how many workflows are searched for the predecessor's
	// sticky queue: any one that it served recently names it.
	stickyLooked = 8
	// historyTail is how many events at the end of a history are searched.
	historyTail = 30
)

// inheritAfter is when the worker looks for what its predecessor left, counted
// from its start. The first look finds it all, but for an activity that
// Temporal hands to a connection of the predecessor that it does not know is dead.
var inheritAfter = []time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second}

// errInherited is the failure of an activity whose worker is gone.
var errInherited = temporal.NewApplicationErrorWithOptions("the worker that ran it is gone; its successor goes on with it", "Inherited",
	temporal.ApplicationErrorOptions{NextRetryDelay: takeOverDelay, Category: temporal.ApplicationErrorCategoryBenign})

// inherit has Temporal offer anew what an earlier worker of this host ran.
func (w *Worker) inherit(ctx context.Context) {
	began := time.Now()

	for _, after := range inheritAfter {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(began.Add(after))):
		}

		if err := w.inheritOnce(ctx, after == 0); err != nil && ctx.Err() == nil {
			w.Log.Warn("taking over what the worker before this one ran; Temporal offers the rest once its heartbeats are missed", "error", err)
		}
	}
}

func (w *Worker) inheritOnce(ctx context.Context, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, inheritTimeout)
	defer cancel()

	leases, err := w.Leases(ctx, w.HostID)
	if err != nil {
		return err
	}

	leases = slices.DeleteFunc(leases, func(l berth.HostLease) bool {
		return l.AttemptState != berth.AttemptPlaced && l.AttemptState != berth.AttemptRunning
	})

	var (
		group errgroup.Group // one workflow that cannot be asked must not keep the others from it
		taken atomic.Int64
	)

	group.SetLimit(inheritAtOnce)

	if first {
		group.Go(func() error { return w.retireSticky(ctx, leases) })
	}

	for _, l := range leases {
		group.Go(func() error {
			n, err := w.takeOver(ctx, workflows.TrialWorkflowID(l.SweepID, l.TrialNumber))
			taken.Add(int64(n))

			return err
		})
	}

	err = group.Wait()

	if n := taken.Load(); n > 0 {
		w.Log.Info("took over attempts of the worker before this one", "attempts", n)
	}

	return err
}

// takeOver fails the attempt that an earlier worker of this host left in a
// workflow, which makes Temporal offer it again, and returns how many it failed.
func (w *Worker) takeOver(ctx context.Context, workflowID string) (taken int, err error) {
	description, err := w.Client.DescribeWorkflowExecution(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return 0, nil
	}

	if err != nil {
		return 0, err
	}

	for _, pending := range description.GetPendingActivities() {
		if !w.left(pending) {
			continue
		}

		err := w.Client.CompleteActivityByID(ctx, w.Namespace, workflowID,
			description.GetWorkflowExecutionInfo().GetExecution().GetRunId(), pending.GetActivityId(), nil, errInherited)
		if _, ended := errors.AsType[*serviceerror.NotFound](err); ended {
			continue // Temporal noticed meanwhile
		}

		if err != nil {
			return taken, err
		}

		taken++
	}

	return taken, nil
}

// left reports whether an activity runs, as Temporal believes, on an earlier
// worker of this host.
func (w *Worker) left(pending *workflow.PendingActivityInfo) bool {
	return pending.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED &&
		strings.HasPrefix(pending.GetLastWorkerIdentity(), hostIdentity(w.HostID)) && pending.GetLastWorkerIdentity() != w.hostIdentity
}

// retireSticky tells Temporal that the sticky queue of the predecessor is dead.
// Otherwise each workflow that it had in its memory waits 5 s for it.
func (w *Worker) retireSticky(ctx context.Context, leases []berth.HostLease) error {
	var ids []string

	for _, l := range leases {
		for _, id := range []string{workflows.SweepWorkflowID(l.SweepID), workflows.TrialWorkflowID(l.SweepID, l.TrialNumber)} {
			if !slices.Contains(ids, id) && len(ids) < stickyLooked {
				ids = append(ids, id)
			}
		}
	}

	var (
		all     error
		retired []string
	)

	for _, id := range ids {
		queue, identity, err := w.stickyQueue(ctx, id)
		if err != nil || queue == "" || slices.Contains(retired, queue) {
			all = errors.Join(all, err)

			continue
		}

		retired = append(retired, queue)

		_, err = w.Client.WorkflowService().ShutdownWorker(ctx, &workflowservice.ShutdownWorkerRequest{
			Namespace: w.Namespace, StickyTaskQueue: queue, Identity: identity, Reason: "killed; its successor is here",
		})
		all = errors.Join(all, err)
	}

	return all
}

// stickyQueue is where an earlier worker of this host was last offered the
// workflow, and that worker's identity; empty when another one served it.
func (w *Worker) stickyQueue(ctx context.Context, workflowID string) (queue, identity string, err error) {
	history, err := w.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: w.Namespace, Execution: &common.WorkflowExecution{WorkflowId: workflowID}, MaximumPageSize: historyTail,
	})
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return "", "", nil
	}

	if err != nil {
		return "", "", err
	}

	for _, event := range history.GetHistory().GetEvents() { // newest first: a task is started after it was scheduled
		if started := event.GetWorkflowTaskStartedEventAttributes(); started != nil {
			identity = started.GetIdentity()
		}

		offered := event.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue()
		if offered.GetKind() != enums.TASK_QUEUE_KIND_STICKY || identity == "" {
			continue
		}

		if !strings.HasPrefix(identity, sharedIdentity(w.HostID)) || identity == w.sharedIdentity {
			return "", "", nil
		}

		return offered.GetName(), identity, nil
	}

	return "", "", nil
}
