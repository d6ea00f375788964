package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// awaitFor waits until the condition holds, for at most patience, and reports
// whether it does. why says on Temporal's page what is waited for. Unlike the
// SDK's AwaitWithTimeout it cancels its timer, of which a busy sweep would
// otherwise have thousands pending. A canceled wait is an error, whatever the
// condition says.
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
	if err == nil && ctx.Err() != nil && // the cancellation ended the timer first
		workflow.GetVersion(ctx, changeCanceledWait, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		err = ctx.Err()
	}

	return met, err
}
