package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth/activities"
)

// The time limits of the steps.
const (
	stepTimeout     = 15 * time.Second    // one try of a step: a few statements of at most 5 s
	stepPatience    = 30 * 24 * time.Hour // all tries: a sweep outlives any outage of the database
	retryFirst      = 200 * time.Millisecond
	retryLongest    = 30 * time.Second
	runMargin       = 80 * time.Minute // over max_trial_duration: an hour for its image to arrive, start, grace, collecting
	answerPatience  = 10 * time.Second // for a host to take the order to give a place back: a live worker polls all the time
	releasePatience = 2 * time.Minute  // for all of it: 30 s of grace, as much for Docker to kill, and to commit
	recheckFirst    = time.Minute      // signals are only ever a shortcut
	recheckLongest  = 10 * time.Minute
)

// steps returns the options of short steps, run as local activities: the worker
// runs them within the workflow's task, without the server's round trips that
// handing out a normal activity takes.
func steps(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    stepTimeout,
		ScheduleToCloseTimeout: stepPatience,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryFirst, BackoffCoefficient: 2, MaximumInterval: retryLongest,
		},
	})
}

// acts names the activities. It stays nil: Temporal needs their names only.
var acts *activities.Activities

// step runs one short step and reads its result; out nil = it has none.
func step(ctx workflow.Context, do, in, out any) error {
	return workflow.ExecuteLocalActivity(steps(ctx), do, in).Get(ctx, out)
}

// onHost returns the options of an attempt on its host. Retries are the same
// attempt, and go on for as long as the host answers.
func onHost(ctx workflow.Context, hostID, summary string, brief activities.TrialBrief) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              HostQueue(hostID),
		ScheduleToStartTimeout: time.Duration(brief.HostPatience),
		StartToCloseTimeout:    time.Duration(brief.MaxDuration) + runMargin,
		HeartbeatTimeout:       time.Duration(brief.Heartbeat),
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
	})
}
