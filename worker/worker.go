// Package worker runs a machine's part of Berth: the workflow queue that all
// workers of the installation share, and the queue of this host, on which its
// attempts run.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
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
	// measured 0.15 s, against 10 s with the SDK's default for a heartbeat
	// timeout of 20 s.
	heartbeatThrottle = 2 * time.Second
	// attemptSlots is more than any host holds leases for, so that no leased
	// attempt waits for a slot and looks like one whose host is gone.
	attemptSlots = 1000
	pollers      = 5
)

// Worker serves its queues.
type Worker struct {
	Client         client.Client
	InstallationID string // the namespace must belong to it
	HostID         string
	Activities     *activities.Activities
	Log            *slog.Logger
	// Database fails while the database does not answer; nil = it always does.
	Database func(ctx context.Context) error

	identity string // of this process, on Temporal's pages
	answered atomic.Int64
}

// Run serves until ctx ends, then lets attempts detach from their containers.
// It fails when Temporal does not answer at its start, and may be called again.
func (w *Worker) Run(ctx context.Context) error {
	w.identity = "host-" + w.HostID + "@" + uuid.NewString()[:8]

	shared, err := w.startShared()
	if err != nil {
		return err
	}

	host := worker.New(w.Client, workflows.HostQueue(w.HostID), worker.Options{
		Identity:                           w.identity,
		DisableWorkflowWorker:              true,
		WorkerStopTimeout:                  stopTimeout,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		MaxConcurrentActivityExecutionSize: attemptSlots,
		MaxConcurrentActivityTaskPollers:   pollers,
	})
	host.RegisterActivity(w.Activities)

	if err := host.Start(); err != nil {
		shared.Stop()

		return fmt.Errorf("starting worker of host %q: %w", w.HostID, err)
	}

	w.Log.Info("worker serves", "host_id", w.HostID)

	var group errgroup.Group

	group.Go(func() error { w.watchTemporal(ctx); return nil })
	group.Go(func() error { w.keepShared(ctx, shared); return nil })

	<-ctx.Done()
	group.Go(func() error { host.Stop(); return nil })

	return group.Wait()
}

// startShared starts serving the installation's queue, which all workers share.
func (w *Worker) startShared() (worker.Worker, error) {
	queue := workflows.SharedQueue(w.InstallationID)
	shared := worker.New(w.Client, queue, worker.Options{
		Identity:                         w.identity,
		WorkerStopTimeout:                stopTimeout,
		MaxConcurrentWorkflowTaskPollers: pollers,
		Interceptors:                     []interceptor.WorkerInterceptor{LogFailures()},
	})
	workflows.Register(shared)
	shared.RegisterActivity(w.Activities)

	if err := shared.Start(); err != nil {
		return nil, fmt.Errorf("starting worker of queue %q: %w", queue, err)
	}

	return shared, nil
}
