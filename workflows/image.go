package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

const (
	// ImagePatience is how long the submitter of a sweep waits for the machines, and for
	// the image's registry, to resolve an image.
	ImagePatience = 30 * time.Second

	// imageHerePatience is the same for the first machine.
	imageHerePatience = 10 * time.Second

	// imageTryTimeout is how long one machine's Docker may take to answer:
	// milliseconds normally. A frozen worker still gets tasks, by its open calls,
	// and never does them; then the workflow asks another one.
	imageTryTimeout = 2 * time.Second

	// registryTimeout is how long a registry may take: registries on the internet take less than 2 s.
	registryTimeout = 6 * time.Second

	// registryHosts is how many machines ask a registry at most: their credentials may differ.
	registryHosts = 3
)

// ImageWorkflow resolves an image on any machine: the server has no Docker. When
// that machine does not have it, the workflow asks all others, and then the
// registry.
func ImageWorkflow(ctx workflow.Context, in activities.ImageRef) (berth.Image, error) {
	var image berth.Image

	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: imageHerePatience,
		StartToCloseTimeout:    imageTryTimeout,
		Summary:                "look up image " + in.Image,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: retryFirst},
	}), acts.ResolveImage, in).Get(ctx, &image)
	if err == nil || !lacksImage(err) {
		return image, err
	}

	var hosts []string
	if err := workflow.ExecuteActivity(oneTry(ctx, "list the machines", "", imageTryTimeout), acts.ImageHosts).Get(ctx, &hosts); err != nil {
		return image, err
	}

	asked := make([]workflow.Future, 0, len(hosts))
	for _, host := range hosts {
		asked = append(asked, workflow.ExecuteActivity(oneTry(ctx, "look up image "+in.Image, host, imageTryTimeout), acts.ResolveImage, in))
	}

	for _, answer := range asked {
		if answer.Get(ctx, &image) == nil {
			return image, nil
		}
	}

	var silent error // neither a machine nor the registry answered

	for i, host := range hosts {
		if i == registryHosts {
			break
		}

		got := workflow.ExecuteActivity(oneTry(ctx, "ask the registry of image "+in.Image, host, registryTimeout), acts.AskRegistry, in).Get(ctx, &image)
		if got == nil {
			return image, nil
		}

		if machineAnswered(got) && lacksImage(err) { // the registry's answer, rather than that a machine pulls nothing
			err = got
		}

		if temporal.IsTimeoutError(got) {
			silent = registrySilent(in.Image)
		}
	}

	if silent != nil && lacksImage(err) { // no host that could answer said that the image is missing
		err = silent
	}

	return image, err
}

// registrySilent is the error for an image's registry that did not answer in
// time.
func registrySilent(image string) error {
	return activities.ImageProblems(&berth.SpecError{Problems: []berth.Problem{{
		Code: activities.CodeImageRegistry, Pointer: "/image", Message: fmt.Sprintf(
			"no machine has image %q, and its registry did not answer the machine that asked it within %s; send the sweep again when `docker pull` works there",
			image, registryTimeout),
	}}})
}

// oneTry returns the options of one question to a machine, or, where host is empty, to any.
func oneTry(ctx workflow.Context, summary, host string, timeout time.Duration) workflow.Context {
	options := workflow.ActivityOptions{
		ScheduleToCloseTimeout: timeout,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}

	if host != "" {
		options.TaskQueue = HostQueue(host)
	}

	return workflow.WithActivityOptions(ctx, options)
}

// problemsOf returns the image's problems by a machine's answer.
func problemsOf(err error) (problems []berth.Problem) {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !app.HasDetails() || app.Details(&problems) != nil {
		return nil
	}

	return problems
}

// machineAnswered reports whether a machine named a problem, rather than gave no answer.
func machineAnswered(err error) bool { return len(problemsOf(err)) > 0 }

// lacksImage reports whether a machine said that it does not have an image.
func lacksImage(err error) bool {
	problems := problemsOf(err)

	return len(problems) > 0 && problems[0].Code == activities.CodeImageMissing
}
