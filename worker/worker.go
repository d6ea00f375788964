// Package worker runs a machine's part of Berth: the workflow queue that all
// workers share, and the queue of this host, on which its attempts run.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

const (
	// stopTimeout is how long activities have to detach; the process leaves
	// after that. Detaching takes well under a second.
	stopTimeout = 20 * time.Second
	// heartbeatThrottle bounds how late a cancellation reaches a container:
	// measured 0.15 s against 10 s without it (reference/temporal.md section 2).
	heartbeatThrottle = 2 * time.Second
	// attemptSlots is more than any host holds leases for, so that no leased
	// attempt waits for a slot and looks like one whose host is gone.
	attemptSlots = 1000
	pollers      = 5
)

// Worker serves the two queues.
type Worker struct {
	Client     client.Client
	HostID     string
	Activities *activities.Activities
	Log        *slog.Logger
}

// Run serves until ctx ends, then lets attempts detach from their containers.
// It fails when Temporal does not answer at its start, and may be called again.
func (w *Worker) Run(ctx context.Context) error {
	shared := worker.New(w.Client, workflows.TaskQueue, worker.Options{
		Identity:                         "berth-" + w.HostID,
		WorkerStopTimeout:                stopTimeout,
		MaxConcurrentWorkflowTaskPollers: pollers,
		Interceptors:                     []interceptor.WorkerInterceptor{workflows.LogFailures()},
	})
	workflows.Register(shared)
	shared.RegisterActivity(w.Activities)

	host := worker.New(w.Client, workflows.HostQueue(w.HostID), worker.Options{
		Identity:                           "host-" + w.HostID,
		DisableWorkflowWorker:              true,
		WorkerStopTimeout:                  stopTimeout,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		MaxConcurrentActivityExecutionSize: attemptSlots,
		MaxConcurrentActivityTaskPollers:   pollers,
	})
	host.RegisterActivity(w.Activities)

	if err := shared.Start(); err != nil {
		return fmt.Errorf("starting worker of queue %q: %w", workflows.TaskQueue, err)
	}

	if err := host.Start(); err != nil {
		shared.Stop()

		return fmt.Errorf("starting worker of host %q: %w", w.HostID, err)
	}

	w.Log.Info("worker serves", "host_id", w.HostID)

	<-ctx.Done()

	var group errgroup.Group

	group.Go(func() error { host.Stop(); return nil })
	group.Go(func() error { shared.Stop(); return nil })

	return group.Wait()
}
