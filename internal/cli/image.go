package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/script"
)

func (o *options) imageCommand() *cobra.Command {
	var timeout time.Duration

	cmd := &cobra.Command{
		Use: "check IMAGE", Short: "Say whether trials can run in an image, and how long its frameworks take to import",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			docker, err := o.docker()
			if err != nil {
				return err
			}
			defer func() { _ = docker.Close() }()

			facts, err := docker.ResolveImage(cmd.Context(), args[0])
			if err != nil {
				return dockerError(args[0], err)
			}

			say(cmd.ErrOrStderr(), "looking into %s as a trial would; importing its frameworks may take a minute\n", args[0])

			limit := strconv.Itoa(int(timeout.Seconds()) + lookGrace)
			looked, err := lookWithPython(cmd.Context(), docker, berth.Look{Image: args[0], Timeout: timeout}, script.ImageDriver, limit)
			inside, found := script.ReadReport[script.ImageReport](looked.Stdout)

			switch {
			case found, errors.Is(err, errNoPython):
				return o.print(cmd.OutOrStdout(), inside, func() table { return imageTable(args[0], facts, looked, inside) })
			case err != nil:
				return err
			default:
				return exitf(ExitError, "in image %q Python does not start for a user without rights within %s (exit code %d): %s", args[0], timeout, looked.ExitCode, lastWords(looked))
			}
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long it may take")

	return o.noun("image", "Images on this machine", cmd)
}

// imageTable has a line for each finding.
func imageTable(image string, facts berth.Image, looked berth.Looked, inside script.ImageReport) table {
	t := table{}
	t.add("image", image, berth.BytesText(facts.SizeBytes), facts.OS+"/"+facts.Architecture)

	if len(facts.Entrypoint) > 0 {
		t.add("entrypoint", strings.Join(facts.Entrypoint, " "), "not run, unless the sweep file says entrypoint: true")
	}

	if len(facts.Volumes) > 0 {
		t.add("volumes", strings.Join(facts.Volumes, " "), "a trial finds each empty: keep the data at another path")
	}

	if inside.Python == "" {
		t.add("python", none, "any program can be a trial, but `berth init` and the shim need python3")

		return t
	}

	t.add("runs as", fmt.Sprintf("%d:%d", inside.UID, inside.GID))
	t.add("container starts in", span(looked.FirstOutput))
	t.add("python", inside.Python)

	for _, f := range inside.Frameworks {
		t.add(f.Module, f.Version, cmp.Or(f.Error, fmt.Sprintf("imported in %.1f s", f.ImportSeconds)))
	}

	return t
}
