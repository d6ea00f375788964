// Package worker runs a machine's part of Berth: the workflow queue that all
// workers of the installation share, and the queue of this host, on which its
// attempts run.
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

// Worker serves its queues.
type Worker struct {
	Client         client.Client
	InstallationID string // the namespace must belong to it
	HostID         string
	Activities     *activities.Activities
	Log            *slog.Logger
}

// service is a worker of one queue.
type service interface {
	Start() error
	Stop()
}

// Run serves until ctx ends, then lets attempts detach from their containers.
// It fails when Temporal does not answer at its start, and may be called again.
func (w *Worker) Run(ctx context.Context) error {
	services := map[string]service{
		workflows.SharedQueue(w.InstallationID): w.shared(workflows.SharedQueue(w.InstallationID)),
		workflows.LegacyQueue:                   w.shared(workflows.LegacyQueue),
		workflows.HostQueue(w.HostID):           w.host(),
	}

	var group errgroup.Group

	defer group.Wait() //nolint:errcheck // none returns an error

	for queue, one := range services {
		if err := one.Start(); err != nil {
			return fmt.Errorf("starting worker of queue %q: %w", queue, err)
		}

		defer group.Go(func() error { one.Stop(); return nil }) // all at once: each waits for its activities
	}

	w.Log.Info("worker serves", "host_id", w.HostID)

	<-ctx.Done()

	return nil
}

// shared serves workflows. Those that a version without installation ids began
// are on a queue of their own for as long as they last.
func (w *Worker) shared(queue string) service {
	shared := worker.New(w.Client, queue, worker.Options{
		Identity:                         "berth-" + w.HostID,
		WorkerStopTimeout:                stopTimeout,
		MaxConcurrentWorkflowTaskPollers: pollers,
		Interceptors:                     []interceptor.WorkerInterceptor{workflows.LogFailures()},
	})
	workflows.Register(shared)
	shared.RegisterActivity(w.Activities)

	return shared
}

// host serves the attempts of this host.
func (w *Worker) host() service {
	host := worker.New(w.Client, workflows.HostQueue(w.HostID), worker.Options{
		Identity:                           "host-" + w.HostID,
		DisableWorkflowWorker:              true,
		WorkerStopTimeout:                  stopTimeout,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		MaxConcurrentActivityExecutionSize: attemptSlots,
		MaxConcurrentActivityTaskPollers:   pollers,
	})
	host.RegisterActivity(w.Activities)

	return host
}
