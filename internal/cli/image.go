package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/script"
)

// imageCheckTimeout bounds a look that imports each framework three times.
const imageCheckTimeout = 5 * time.Minute

// How a finding matters.
const (
	levelFine = "fine"
	levelNote = "note"
	levelMend = "mend" // trials run, but badly
	levelStop = "stop" // no trial can run
)

// finding is one thing to know of an image, and what to type about it.
type finding struct {
	Level string `json:"level"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// imageCheck is all that `berth image check` finds.
type imageCheck struct {
	Image           string              `json:"image"`
	ID              string              `json:"id"`
	SizeBytes       int64               `json:"size_bytes"`
	Platform        string              `json:"platform"`
	User            string              `json:"user"` // of the image; empty = root
	Workdir         string              `json:"workdir"`
	Entrypoint      []string            `json:"entrypoint"`
	Command         []string            `json:"command"`
	Volumes         []string            `json:"volumes"`
	StartSeconds    float64             `json:"start_seconds"` // of a container, to its first program; 0 = not measured
	Inside          *script.ImageReport `json:"inside"`        // nil = nothing ran in it
	Runnable        bool                `json:"runnable"`
	StoppedTooEarly bool                `json:"stopped_too_early"` // by --timeout; what is measured last is missing
	Findings        []finding           `json:"findings"`
}

func (c *imageCheck) add(level, what, do string, args ...any) {
	c.Findings = append(c.Findings, finding{Level: level, What: what, Do: fmt.Sprintf(do, args...)})
}

func (o *options) imageCommand() *cobra.Command {
	return o.noun("image", "Images on this machine", o.checkImageCommand())
}

func (o *options) checkImageCommand() *cobra.Command {
	var timeout time.Duration

	cmd := &cobra.Command{
		Use: "check IMAGE", Short: "Say whether trials can run in an image, how fast they start, and what to mend",
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

			check, err := o.checkImage(cmd, docker, args[0], timeout)
			if err != nil {
				return err
			}

			if err := o.printCheck(cmd.OutOrStdout(), check); err != nil {
				return err
			}

			if !check.Runnable {
				return exitf(ExitError, "no trial can run in image %q", args[0])
			}

			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", imageCheckTimeout, "how long it may take")

	return cmd
}

// checkImage looks into an image as a trial would see it.
func (o *options) checkImage(cmd *cobra.Command, docker LocalDocker, image string, timeout time.Duration) (*imageCheck, error) {
	ctx := cmd.Context()

	facts, err := docker.Facts(ctx, image)
	if err != nil {
		return nil, dockerError(image, err)
	}

	c := &imageCheck{
		Image: image, ID: facts.ID, SizeBytes: facts.SizeBytes, Platform: facts.OS + "/" + facts.Architecture, User: facts.User,
		Workdir: facts.Workdir, Entrypoint: facts.Entrypoint, Command: facts.Command, Volumes: facts.Volumes, Runnable: true,
	}

	say(cmd.ErrOrStderr(), "looking into %s as a trial would; importing its frameworks may take a minute\n", image)

	looked, python, err := lookWithPython(ctx, docker, berth.Look{Image: image, Timeout: timeout}, "-c", script.ImageDriver, strconv.Itoa(int(timeout.Seconds())+lookGrace))
	c.StoppedTooEarly = looked.TimedOut
	inside := script.ReadImageReport(looked.Stdout)

	start, refused := errors.AsType[*berth.StartError](err)

	switch {
	case inside.Python != "":
		c.Inside = &inside
		if strings.HasPrefix(python, "/") {
			c.add(levelNote, "its Python is "+python+", which is not in its PATH", "name it so in the sweep file: command: [%s, /app/train.py]", python)
		}

		c.StartSeconds = max(looked.FirstOutput.Seconds()-inside.InterpreterSeconds, 0)
	case refused && start.Kind != berth.FailureBadCommand || looked.Foreign || looked.NoUser:
		c.stopped(err, looked)
	case noProgram(looked, err):
		c.add(levelNote, "it has no python3: any program can be a trial, but `berth init` and the shim need Python", "")
	case err != nil:
		return nil, dockerError(image, err)
	default:
		c.stopped(nil, looked)
	}

	c.judge()

	return c, nil
}

// stopped notes why not even Python starts.
func (c *imageCheck) stopped(err error, looked berth.Looked) {
	c.Runnable = false

	switch {
	case looked.Foreign:
		c.add(levelStop, "its programs are for another kind of processor than this machine's; it says that it is for "+c.Platform, "docker build --platform linux/amd64 -t %s .    (linux/arm64 where `uname -m` says aarch64)", c.Image)
	case looked.NoUser:
		c.add(levelStop, "it does not know its own user "+c.User+": no container of it starts", "in the Dockerfile: USER 65532:65532, or RUN useradd %s before USER", c.User)
	case err != nil:
		c.add(levelStop, "a container of it does not start: "+oneLine(err.Error()), "docker run --rm %s true", c.Image)
	case looked.OutOfMemory:
		c.add(levelStop, "Python needs more than "+berth.BytesText(lookMemory)+" to start", "")
	case looked.TimedOut:
		c.add(levelStop, "Python does not start in time", "berth image check %s --timeout 10m", c.Image)
	default:
		text := strings.TrimSpace(string(looked.Stderr))
		c.add(levelStop, fmt.Sprintf("Python does not start for a user without rights (exit code %d): %s", looked.ExitCode, oneLine(text[max(0, len(text)-300):])),
			"docker run --rm --user 65532:65532 --read-only --network none %s python3 -c pass", c.Image)
	}
}

func (o *options) printCheck(w io.Writer, c *imageCheck) error {
	if o.output != formatTable && o.output != "" {
		return o.print(w, c, func() table { return checkTable(c) })
	}

	say(w, "%s  %s, %s\n", c.Image, berth.BytesText(c.SizeBytes), c.Platform)

	if err := printTable(w, checkTable(c)); err != nil {
		return err
	}

	for _, f := range c.Findings {
		say(w, "\n%s: %s\n", f.Level, f.What)

		if f.Do != "" {
			say(w, "      %s\n", f.Do)
		}
	}

	return nil
}

// checkTable is what was found and measured, a line each.
func checkTable(c *imageCheck) table {
	t := table{}
	t.add("runs as", runsAs(c))

	if len(c.Entrypoint) > 0 {
		t.add("entrypoint", strings.Join(c.Entrypoint, " "))
	}

	if c.Inside == nil {
		return t
	}

	in := c.Inside
	t.add("python", in.Python)

	for _, f := range in.Frameworks {
		t.add(f.Name, f.Version)
	}

	t.add("gpu libraries", first(strings.Join(in.GPULibraries, " "), none))

	if in.Packages != nil {
		t.add("byte-compiled", share(in.Packages))
	}

	t.add("container starts in", span(seconds(c.StartSeconds)))

	if in.InterpreterSeconds > 0 {
		t.add("python starts in", fmt.Sprintf("%.2f s", in.InterpreterSeconds))
	}

	for _, i := range in.Imports {
		if i.Error != "" {
			t.add("import "+i.Module, "fails")

			continue
		}

		slow := make([]string, 0, len(i.Slowest))
		for _, m := range i.Slowest {
			slow = append(slow, fmt.Sprintf("%s %.2f s", m.Module, m.Seconds))
		}

		t.add("import "+i.Module, fmt.Sprintf("%.1f s, then %.1f s", i.FirstSeconds, i.SecondSeconds), "most: "+strings.Join(slow, ", "))
	}

	return t
}

func share(b *script.ByteCode) string {
	return fmt.Sprintf("%s of %s files", grouped(int64(b.Compiled)), grouped(int64(b.Files)))
}

func runsAs(c *imageCheck) string {
	user, _, _ := strings.Cut(c.User, ":")
	root := user == "" || user == "root" || user == "0"
	text := c.User

	switch {
	case c.Inside != nil:
		text = fmt.Sprintf("%d:%d", c.Inside.UID, c.Inside.GID)
	case root:
		text = "65532:65532"
	}

	if root {
		text += ", as the image's user is root"
	}

	return text
}
