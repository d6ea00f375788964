package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// awaitFor waits until the condition holds, for at most patience, and reports
// whether it does. why is the reason shown on Temporal's page. Unlike the SDK's
// AwaitWithTimeout it cancels its timer; otherwise a busy sweep would have
// thousands of timers pending. A canceled wait is an error, whether or not the
// condition holds.
func awaitFor(ctx workflow.Context, patience time.Duration, why string, condition func() bool) (met bool, err error) {
	if condition() {
		return true, ctx.Err()
	}

	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()

	timer := workflow.NewTimerWithOptions(timerCtx, patience, workflow.TimerOptions{Summary: why})

	err = workflow.Await(ctx, func() bool {
		met = met || condition()

		return met || timer.IsReady()
	})
	if err == nil {
		err = ctx.Err() // the cancellation may have ended the timer first
	}

	return met, err
}

// historyMax is how many events a run may have before the next one starts.
// It leaves room for a whole window of a sweep to be started and to end below the
// 4,096 at which Temporal suggests as much. At 51,200 Temporal ends the workflow.
const historyMax = 2000

// longHistory reports whether the next run should go on.
func longHistory(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)

	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > historyMax
}
