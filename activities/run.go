package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
)

const (
	// beatEvery is how often progress is recorded. The SDK sends at most one
	// in MaxHeartbeatThrottleInterval, which worker sets to 2 s.
	beatEvery = time.Second
	// detachDelay is when Temporal offers a detached attempt again: at once,
	// for the successor of a worker that is being replaced.
	detachDelay = 500 * time.Millisecond
	// letGoTimeout bounds the statement that fences an attempt.
	letGoTimeout = 10 * time.Second
)

// errDetach is the cause with which a run's context ends when its container
// stays and another worker goes on with it.
var errDetach = errors.New("the worker is stopping")

// RunTrial runs one attempt on this host. Whatever ends the activity but a
// cancellation by the server leaves the container running (rule R5); the retry
// of the activity is the same attempt and adopts it (rule R1). An attempt that
// did not end well is a non-retryable error whose type is the failure kind.
func (a *Activities) RunTrial(ctx context.Context, order berth.Order) (berth.Outcome, error) {
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &order.Progress); err != nil {
			activity.GetLogger(ctx).Warn("heartbeat of the earlier run is unreadable", "attempt", order.AttemptID, "error", err)
		}
	}

	runCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)

	beats := make(chan berth.Progress, 1)
	done := make(chan struct{})

	go func() { // ends with the run, below
		defer close(done)
		heartbeat(ctx, runCtx, end, order.Progress, beats)
	}()

	order.Beat = func(p berth.Progress) {
		select {
		case <-beats:
		default:
		}
		beats <- p
	}

	outcome, err := a.Executor.Run(runCtx, order)
	stopped := errors.Is(context.Cause(runCtx), berth.ErrStop)

	end(nil)
	<-done

	if errors.Is(err, berth.ErrNotStopped) && (stopped || order.Stop) { // else it ran too long, and is stopped by the next run
		outcome, err = a.letGo(runCtx, order)
	}

	switch {
	case err != nil && errors.Is(context.Cause(runCtx), errDetach):
		return berth.Outcome{}, temporal.NewApplicationErrorWithOptions("detached: the container goes on and the next worker adopts it",
			"Detached", temporal.ApplicationErrorOptions{NextRetryDelay: detachDelay, Category: temporal.ApplicationErrorCategoryBenign})
	case err != nil:
		return berth.Outcome{}, translate(err)
	case outcome.Kind == berth.FailureCanceled && stopped:
		return outcome, temporal.NewCanceledError(outcome)
	case outcome.Kind == berth.FailureCanceled:
		return outcome, nil // this activity was not canceled: Temporal would take the error for a failure, and repeat it for ever
	case outcome.Kind == berth.FailurePruned: // it ended as it should
		return outcome, nil
	case outcome.Kind != berth.FailureOK:
		return outcome, failed(outcome)
	default:
		return outcome, nil
	}
}

// letGo ends a canceled attempt whose container could not be stopped: it is
// fenced, its place stays booked, and the host's reconciler stops the container
// once Docker answers. The trial need not wait for that.
func (a *Activities) letGo(ctx context.Context, order berth.Order) (berth.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGoTimeout)
	defer cancel()

	const message = "canceled; Docker on the host does not answer, or cannot stop the container: " +
		"the host goes on trying, and the place stays booked until the container is gone"

	if err := a.Trials.AbandonAttempt(ctx, order.AttemptID, message); err != nil {
		return berth.Outcome{}, err
	}

	now := time.Now().UTC()

	return berth.Outcome{Kind: berth.FailureCanceled, Message: message, StartedAt: now, FinishedAt: now}, nil
}

// heartbeat records progress every second, the first time after one: a start is
// no news, and costs Temporal a transaction. It ends the run's context when the
// activity or the worker ends, with the cause that says what to do.
func heartbeat(ctx, run context.Context, end context.CancelCauseFunc, p berth.Progress, beats <-chan berth.Progress) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()

	for {
		select {
		case <-run.Done():
			return
		case p = <-beats:
			continue // told with the next beat
		case <-ticker.C:
			activity.RecordHeartbeat(ctx, p)
		case <-activity.GetWorkerStopChannel(ctx):
			end(errDetach)

			return
		case <-ctx.Done():
			end(causeOf(ctx))

			return
		}
	}
}

// causeOf tells an order to stop from everything else that ends a context:
// shutdown, a lost connection, a timeout of the heartbeat.
func causeOf(ctx context.Context) error {
	if _, ok := errors.AsType[*temporal.CanceledError](context.Cause(ctx)); ok {
		return berth.ErrStop
	}

	return errDetach
}
