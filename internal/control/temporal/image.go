package temporal

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// startPatience is how long Temporal may take to accept that question:
// milliseconds when it is up. The caller waits in vain while it is down.
const startPatience = 3 * time.Second

// imageTaskTimeout is how long a worker may take for the question's next
// workflow task, before another one gets it: milliseconds normally.
const imageTaskTimeout = time.Second

// beginPatience is how long the machines may take to be at the question: a little longer
// than the first of them may take to answer. Without one nothing comes of waiting for
// all that workflows.ImagePatience allows, such as a registry's answer.
const beginPatience = 12 * time.Second

// ResolveImage finds the digest of an image on one of the machines. Errors: a
// *berth.SpecError when it is not there or must not be used; unavailable when
// no machine answers.
func (c *Client) ResolveImage(ctx context.Context, ref string) (berth.Image, error) {
	ctx, cancel := context.WithTimeout(ctx, workflows.ImagePatience+2*time.Second)
	defer cancel()

	starting, stop := context.WithTimeout(ctx, startPatience)
	defer stop()

	run, err := c.temporal.ExecuteWorkflow(starting, client.StartWorkflowOptions{
		ID: "image-" + uuid.NewString(), TaskQueue: c.queue,
		WorkflowExecutionTimeout: workflows.ImagePatience + 2*time.Second,
		WorkflowTaskTimeout:      imageTaskTimeout,
		StaticSummary:            "look up image " + ref,
	}, workflows.ImageWorkflow, activities.ImageRef{Image: ref})
	if err != nil {
		return berth.Image{}, translate(err, "looking up image "+ref)
	}

	var image berth.Image

	if err = c.begun(ctx, run, &image); err == nil {
		err = run.Get(ctx, &image)
	}

	var (
		app      *temporal.ApplicationError
		problems []berth.Problem
	)

	if errors.As(err, &app) && app.HasDetails() && app.Details(&problems) == nil {
		return image, &berth.SpecError{Problems: problems}
	}

	if err != nil {
		return image, berth.Errorf(berth.KindUnavailable,
			"looking up image %q: no machine answered; is `berth worker` running?", ref)
	}

	return image, nil
}

// begun waits for beginPatience for the answer, which Get then returns, or until then some
// machine is at the question. Errors: unavailable when none is.
func (c *Client) begun(ctx context.Context, run client.WorkflowRun, image *berth.Image) error {
	first, stop := context.WithTimeout(ctx, beginPatience)
	defer stop()

	if err := run.Get(first, image); err == nil || first.Err() == nil || ctx.Err() != nil {
		return err
	}

	got, err := c.describe(ctx, run.GetID())
	if err == nil && len(got.GetPendingActivities()) == 0 {
		err = berth.Errorf(berth.KindUnavailable, "no machine took the question")
	}

	return err
}
