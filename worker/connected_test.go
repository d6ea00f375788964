//go:build integration

package worker_test

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/worker"
	"github.com/berthml/berth/workflows"
)

// connect returns a client of a Temporal of the test's own, and what starts that.
func connect(t *testing.T) (connection client.Client, start func() *devstack.Temporal) {
	t.Helper()

	port, err := devstack.FreePort(0)
	require.NoError(t, err)

	connection, err = client.NewLazyClient(client.Options{
		HostPort: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Logger: temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(connection.Close)

	return connection, func() *devstack.Temporal {
		temporal, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: t.TempDir(), Port: port, InMemory: true, Headless: true})
		require.NoError(t, err)
		t.Cleanup(func() { _ = temporal.Stop() })

		return temporal
	}
}

// serve runs a worker until the test ends.
func serve(t *testing.T, w *worker.Worker) {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() {
		for {
			if err := w.Run(ctx); err == nil || ctx.Err() != nil {
				ended <- err

				return
			}
		}
	}()

	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

// A worker that starts without Temporal fails, and may be called again. Without the
// database it leaves workflow tasks to the workers of other hosts, and serves again when
// it is back; without Temporal its host is not ready.
func TestRun_ServesOnlyWhatItCan(t *testing.T) {
	t.Parallel()

	connection, start := connect(t)

	var away atomic.Bool

	w := &worker.Worker{
		Client: connection, InstallationID: "i", HostID: "h", Log: slog.New(slog.DiscardHandler), Activities: &activities.Activities{},
		Database: func(context.Context) error {
			if away.Load() {
				return berth.Errorf(berth.KindUnavailable, "away")
			}

			return nil
		},
	}
	require.ErrorContains(t, w.Run(t.Context()), "starting worker")

	temporal := start()
	serve(t, w)

	serves := func() bool { // runs a workflow that any worker of the queue answers
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()

		run, err := connection.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflows.SharedQueue("i")}, "NoSuchWorkflow")
		if err != nil {
			return false
		}

		defer func() { _ = connection.TerminateWorkflow(t.Context(), run.GetID(), "", "asked") }()

		history := connection.GetWorkflowHistory(ctx, run.GetID(), "", true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				return false
			}

			if event.GetWorkflowTaskStartedEventAttributes() != nil || event.GetWorkflowTaskFailedEventAttributes() != nil {
				return true
			}
		}

		return false
	}

	require.Eventually(t, serves, 30*time.Second, 10*time.Millisecond)
	away.Store(true)

	missed := 0 // questions in a row: a slow machine may miss one
	require.Eventually(t, func() bool {
		if missed++; serves() {
			missed = 0
		}

		return missed == 2
	}, time.Minute, 10*time.Millisecond)
	away.Store(false)
	require.Eventually(t, serves, time.Minute, 10*time.Millisecond)

	require.Empty(t, w.Trouble())
	require.NoError(t, temporal.Stop())
	require.Eventually(t, func() bool { return w.Trouble() != "" }, time.Minute, 100*time.Millisecond)
}
