//go:build integration

package worker_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	taskqueue "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/worker"
	"github.com/berthml/berth/workflows"
)

// freeze takes tasks of a queue like a worker that was stopped by SIGSTOP: its
// open calls get them, and it never answers.
func freeze(t *testing.T, c client.Client, queue string, calls int) {
	t.Helper()

	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // a call must say how long it waits

	var open sync.WaitGroup

	for range calls {
		open.Go(func() {
			_, _ = c.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
				Namespace: "default", TaskQueue: &taskqueue.TaskQueue{Name: queue}, Identity: "frozen",
			})
		})
		open.Go(func() {
			_, _ = c.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
				Namespace: "default", TaskQueue: &taskqueue.TaskQueue{Name: queue}, Identity: "frozen",
			})
		})
	}

	t.Cleanup(func() {
		stop()
		open.Wait()
	})

	require.Eventually(t, func() bool { // the server has the calls
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			if answer, err := c.DescribeTaskQueue(ctx, queue, kind); err != nil || len(answer.GetPollers()) == 0 {
				return false
			}
		}

		return true
	}, 20*time.Second, 50*time.Millisecond)
}

// here is a Docker that has every image.
type here struct{}

func (here) ResolveImage(context.Context, string) (berth.Image, error) {
	return berth.Image{Digest: "sha256:1"}, nil
}

func (h here) AskRegistry(ctx context.Context, ref string) (berth.Image, error) {
	return h.ResolveImage(ctx, ref)
}

// A person who submits a sweep does not wait for a worker that is frozen: the
// question about the image goes to another one.
func TestResolveImage_GoesPastAFrozenWorker(t *testing.T) {
	t.Parallel()

	connection, start := connect(t)
	start()

	c := temporal.NewClient(connection, "default", "i")
	queue := workflows.SharedQueue("i")

	require.Eventually(t, func() bool { // it is up
		_, err := connection.CheckHealth(t.Context(), nil)

		return err == nil
	}, 30*time.Second, 50*time.Millisecond)

	freeze(t, connection, queue, 1) // one costs 1 s of the workflow and 2 s of the step
	serve(t, &worker.Worker{
		Client: connection, InstallationID: "i", HostID: "h", Activities: &activities.Activities{Images: here{}},
		Log: slog.New(slog.DiscardHandler),
	})

	began := time.Now()
	image, err := c.ResolveImage(t.Context(), "example:1")
	require.NoError(t, err)
	require.Equal(t, "sha256:1", image.Digest)
	require.Less(t, time.Since(began), 9*time.Second)
	t.Logf("answered after %s", time.Since(began))
}
