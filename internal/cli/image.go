package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/script"
)

// imageCheckTimeout bounds a look that imports each framework.
const imageCheckTimeout = 5 * time.Minute

// imageCheck is all that `berth image check` finds.
type imageCheck struct {
	Image        string              `json:"image"`
	SizeBytes    int64               `json:"size_bytes"`
	Platform     string              `json:"platform"`
	User         string              `json:"user"` // of the image; empty = root
	Entrypoint   []string            `json:"entrypoint"`
	Volumes      []string            `json:"volumes"`
	StartSeconds float64             `json:"start_seconds"` // of a container, to its first output
	Inside       *script.ImageReport `json:"inside"`        // nil = it has no Python, or none that starts
	Problem      string              `json:"problem"`       // why no trial can run; empty = trials can
}

func (o *options) imageCommand() *cobra.Command {
	var timeout time.Duration

	cmd := &cobra.Command{
		Use: "check IMAGE", Short: "Say whether trials can run in an image, and how long its frameworks take to import",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < time.Second {
				return exitf(ExitUsage, "--timeout %s is too short; write such as --timeout 5m", timeout)
			}

			docker, err := o.openDocker()
			if err != nil {
				return err
			}
			defer func() { _ = docker.Close() }()

			check, err := checkImage(cmd, docker, args[0], timeout)
			if err != nil {
				return err
			}

			if err := o.print(cmd.OutOrStdout(), check, check.table); err != nil {
				return err
			}

			if check.Problem != "" {
				return exitf(ExitError, "no trial can run in image %q: %s", args[0], check.Problem)
			}

			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", imageCheckTimeout, "how long it may take")

	return o.noun("image", "Images on this machine", cmd)
}

// checkImage looks into an image as a trial would see it.
func checkImage(cmd *cobra.Command, docker LocalDocker, image string, timeout time.Duration) (*imageCheck, error) {
	facts, err := docker.Facts(cmd.Context(), image)
	if err != nil {
		return nil, dockerError(image, err)
	}

	c := &imageCheck{
		Image: image, SizeBytes: facts.SizeBytes, Platform: facts.OS + "/" + facts.Architecture, User: facts.User,
		Entrypoint: facts.Entrypoint, Volumes: facts.Volumes,
	}

	say(cmd.ErrOrStderr(), "looking into %s as a trial would; importing its frameworks may take a minute\n", image)

	looked, _, err := lookWithPython(cmd.Context(), docker, berth.Look{Image: image, Timeout: timeout}, "-c", script.ImageDriver, strconv.Itoa(int(timeout.Seconds())+lookGrace))
	start, refused := errors.AsType[*berth.StartError](err)
	inside, found := script.ReadReport[script.ImageReport](looked.Stdout)

	switch {
	case found:
		c.Inside, c.StartSeconds = &inside, looked.FirstOutput.Seconds()
	case looked.Foreign:
		c.Problem = "its programs are for another kind of processor than this machine's; it says that it is for " + c.Platform
	case looked.NoUser:
		c.Problem = "it does not know its own user " + c.User + "; write into the Dockerfile: USER 65532:65532"
	case noProgram(looked, err): // any program can be a trial
	case refused:
		c.Problem = "a container of it does not start: " + oneLine(start.Error())
	case err != nil:
		return nil, dockerError(image, err)
	case looked.TimedOut:
		c.Problem = "Python does not start in time"
	default:
		const few = 300 // bytes: its last words

		c.Problem = fmt.Sprintf("Python does not start for a user without rights (exit code %d): %s", looked.ExitCode, oneLine(string(looked.Stderr[max(0, len(looked.Stderr)-few):])))
	}

	return c, nil
}

// table has a line for each finding.
func (c *imageCheck) table() table {
	t := table{}
	t.add("image", c.Image, berth.BytesText(c.SizeBytes), c.Platform)

	if len(c.Entrypoint) > 0 {
		t.add("entrypoint", strings.Join(c.Entrypoint, " "), "not run, unless the sweep file says entrypoint: true")
	}

	if len(c.Volumes) > 0 {
		t.add("volumes", strings.Join(c.Volumes, " "), "a trial finds each empty: keep the data at another path")
	}

	if c.Inside == nil {
		t.add("python", none, "any program can be a trial, but `berth init` and the shim need Python")

		return t
	}

	t.add("runs as", fmt.Sprintf("%d:%d", c.Inside.UID, c.Inside.GID))
	t.add("container starts in", span(seconds(c.StartSeconds)))
	t.add("python", c.Inside.Python)

	for _, f := range c.Inside.Frameworks {
		t.add(f.Module, f.Version, first(f.Error, fmt.Sprintf("imported in %.1f s", f.ImportSeconds)))
	}

	return t
}
