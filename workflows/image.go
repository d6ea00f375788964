package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// ImagePatience is how long a person who submits a sweep waits for a machine
// to say what an image is.
const ImagePatience = 10 * time.Second

// imageTryTimeout is how long one machine's Docker may take to answer: ms when
// it is well. A worker that is frozen still gets tasks, by the calls that it
// had open, and never does them; then another one is asked.
const imageTryTimeout = 2 * time.Second

// ImageWorkflow asks any machine what an image is: the server has no Docker.
func ImageWorkflow(ctx workflow.Context, in activities.ImageRef) (berth.Image, error) {
	var (
		a     *activities.Activities
		image berth.Image
	)

	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: ImagePatience,
		StartToCloseTimeout:    imageTryTimeout,
		Summary:                "look up image " + in.Image,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: retryFirst},
	}), a.ResolveImage, in).Get(ctx, &image)

	return image, err
}
