//go:build integration

package worker_test

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"

	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/worker"
	"github.com/berthml/berth/workflows"
)

// A worker that starts while Temporal is away fails, and serves when it is
// called again.
func TestRun_MayBeCalledAgain(t *testing.T) {
	t.Parallel()

	port, err := devstack.FreePort(0)
	require.NoError(t, err)

	silent := slog.New(slog.DiscardHandler)
	connection, err := client.NewLazyClient(client.Options{
		HostPort: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Logger: temporallog.NewStructuredLogger(silent),
	})
	require.NoError(t, err)
	t.Cleanup(connection.Close)

	w := &worker.Worker{Client: connection, InstallationID: "i", HostID: "h", Activities: &activities.Activities{}, Log: silent}
	require.ErrorContains(t, w.Run(t.Context()), "starting worker")

	temporal, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: t.TempDir(), Port: port, InMemory: true, Headless: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, temporal.Stop()) })

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() {
		for { // the connection may not yet have noticed the worker
			if err := w.Run(ctx); err == nil || ctx.Err() != nil {
				ended <- err

				return
			}
		}
	}()

	for queue, kind := range map[string]enums.TaskQueueType{
		workflows.HostQueue("h"): enums.TASK_QUEUE_TYPE_ACTIVITY,
		"berth-i":                enums.TASK_QUEUE_TYPE_WORKFLOW,
	} {
		require.Eventually(t, func() bool {
			got, err := connection.DescribeTaskQueue(t.Context(), queue, kind)

			return err == nil && len(got.GetPollers()) > 0
		}, 30*time.Second, 100*time.Millisecond, queue)
	}

	stop()
	require.NoError(t, <-ended)
}
