package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/script"
)

const (
	defaultBase = "python:3.11-slim"
	mostTrials  = 100_000 // of a sweep: limits.max_trials
	// scriptMount is where a look finds the script's directory.
	scriptMount = "/berth/script"
)

// initiation is one run of `berth init`.
type initiation struct {
	cmd    *cobra.Command
	docker LocalDocker

	script  string // as the user typed it
	image   string // --image; empty = none was given
	base    string
	output  string
	force   bool
	trials  int
	timeout time.Duration

	source  *source
	looksIn string // the image of the look
	stub    bool   // it lacks the libraries, which are made up
	user    string // of the image that was given
	python  string
}

func (o *options) initCommand() *cobra.Command {
	var run initiation

	cmd := &cobra.Command{
		Use:   "init SCRIPT",
		Short: "Write a sweep file and a Dockerfile for your own training script",
		Long: `Write a sweep file and a Dockerfile for your own training script.

Berth runs the script in a container, without network and without rights, until
it reads its command line (argparse, click, typer or absl), and never trains. Of
the flags it guesses what to search, and marks each guess in the file.

Without --image the script's libraries need not be there: what the base image
lacks is made up. A Dockerfile that is there already is never changed.`,
		Example: "  berth init train.py\n  berth init train.py --image tensorflow/tensorflow:2.19.0 -o mnist.yaml",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			run.cmd, run.script = cmd, args[0]

			return run.run(o)
		},
	}
	cmd.Flags().StringVar(&run.image, "image", "", "the image with the script's libraries; default: one that the Dockerfile makes")
	cmd.Flags().StringVar(&run.base, "base", defaultBase, "what the Dockerfile begins with when there is no --image")
	cmd.Flags().StringVarP(&run.output, "output", "o", "sweep.yaml", "the sweep file to write")
	cmd.Flags().IntVar(&run.trials, "trials", script.UsualTrials, "how many trials the sweep file asks for")
	cmd.Flags().BoolVar(&run.force, "force", false, "overwrite the sweep file")
	cmd.Flags().DurationVar(&run.timeout, "timeout", lookTimeout, "how long the script may take to read its flags")
	cmd.SetFlagErrorFunc(usageFlags)

	return cmd
}

func (r *initiation) run(o *options) error {
	if r.timeout < time.Second {
		return exitf(ExitUsage, "--timeout %s is too short for an import; write such as --timeout 2m", r.timeout)
	}

	if r.trials < 1 || r.trials > mostTrials {
		return exitf(ExitUsage, "--trials %d is none of 1 to %d", r.trials, mostTrials)
	}

	var err error
	if r.source, err = readSource(r.script); err != nil {
		return err
	}

	if _, err := os.Stat(r.output); err == nil && !r.force {
		return exitf(ExitConflict, "%s is there already; write elsewhere with `-o OTHER.yaml`, or overwrite it with --force", r.output)
	}

	if info, err := os.Stat(filepath.Dir(r.output)); err != nil || !info.IsDir() {
		return exitf(ExitUsage, "there is no directory %s for the sweep file; type `%s` and the same again", filepath.Dir(r.output), script.ShellCommand("mkdir", "-p", filepath.Dir(r.output)))
	}

	if r.docker, err = o.openDocker(); err != nil {
		return err
	}
	defer func() { _ = r.docker.Close() }()

	if err := r.chooseImage(); err != nil {
		return err
	}

	report, err := r.learnFlags()
	if err != nil {
		return err
	}

	return r.write(report)
}

// ownImage is the name of the image that the Dockerfile makes.
func (r *initiation) ownImage() string { return r.source.slug() + ":1" }

// chooseImage finds the image to look in.
func (r *initiation) chooseImage() error {
	ctx := r.cmd.Context()

	candidates := []string{first(r.image, r.base)}
	if _, err := os.Stat(r.dockerfile()); err == nil && r.image == "" {
		candidates = []string{r.ownImage(), r.base} // built, it has the libraries
	}

	var err error

	for _, candidate := range candidates {
		var facts berth.ImageFacts

		if facts, err = r.docker.Facts(ctx, candidate); err == nil {
			r.looksIn, r.stub = candidate, r.image == "" && candidate == r.base
			if r.image != "" {
				r.user = facts.User
			}

			return nil
		}
	}

	return dockerError(candidates[len(candidates)-1], err)
}

// learnFlags runs the script until it reads its flags. A script that has none is not run.
func (r *initiation) learnFlags() (report script.Report, err error) {
	if r.python = pythons[0]; !script.AsksForFlags(r.source.all) {
		return report, nil
	}

	say(r.cmd.ErrOrStderr(), "reading the flags of %s in a container of %s; its imports may take 10 s or more\n", r.script, r.looksIn)

	args, err := json.Marshal(script.Options{
		Directory: scriptMount, Script: filepath.Base(r.source.path), Stub: r.stub, Limit: int(r.timeout.Seconds()) + lookGrace,
	})
	if err != nil {
		return report, err
	}

	looked, python, err := lookWithPython(r.cmd.Context(), r.docker, berth.Look{
		Image: r.looksIn, Timeout: r.timeout, User: caller(), Workdir: scriptMount,
		Mounts: []berth.Mount{{Source: r.source.dir, Target: scriptMount, ReadOnly: true}},
	}, "-c", script.FlagsDriver, string(args))

	switch {
	case looked.Foreign:
		return report, exitf(ExitError, "image %q is for another kind of processor than this machine's", r.looksIn)
	case err != nil && (looked.NoUser || !noProgram(looked, err)):
		return report, dockerError(r.looksIn, err)
	case noProgram(looked, err):
		return report, exitf(ExitError, "image %q has no python3 and no python; name an image with Python by --image", r.looksIn)
	}

	r.python = python
	report, _ = script.ReadReport[script.Report](looked.Stdout)

	return report, r.explain(report, looked)
}

// explain says why a script did not come to its flags, when it did not. Without
// its libraries it need not: the Dockerfile is written, and the image comes first.
func (r *initiation) explain(report script.Report, looked berth.Looked) error {
	trouble := report.Trouble

	switch {
	case report.Framework != "" || report.Ended != "":
		return nil
	case looked.TimedOut:
		return exitf(ExitTimeout, "%s did not ask for its flags within %s, and was stopped; type the same with `--timeout 10m` if its imports take that long, "+
			"else read the flags before the work begins", r.script, r.timeout)
	case looked.OutOfMemory:
		return exitf(ExitError, "%s used more than %s before it asked for its flags, and was stopped; read the flags before the data", r.script, berth.BytesText(lookMemory))
	case trouble == nil:
		const few = 300 // bytes: its last words

		return exitf(ExitError, "%s ended (exit code %d) before it asked for its flags, without a word to Python; its last output: %s",
			r.script, looked.ExitCode, first(oneLine(string(looked.Stderr[max(0, len(looked.Stderr)-few):])), none))
	}

	text := oneLine(strings.TrimPrefix(trouble.Place+": ", ": ") + trouble.Type + ": " + trouble.Message)

	switch {
	case r.stub && (len(report.Stubbed) > 0 || trouble.Module != ""):
		if err := r.writeDockerfile(append(report.Stubbed, trouble.Module)); err != nil {
			return err
		}

		return exitf(ExitError, "%s needs its libraries before it says its flags (%s). Build the image, then type the same again, which looks into it:\n  %s",
			r.script, text, r.buildCommand())
	case trouble.Type == "PermissionError" && trouble.Place == "":
		return exitf(ExitError, "%s cannot be read by a user without rights, as trials are (%s); type `%s` and the same again",
			r.script, oneLine(trouble.Message), script.ShellCommand("chmod", "a+rX", r.source.dir, r.source.path))
	case trouble.Module != "" && trouble.Type == "ModuleNotFoundError":
		return exitf(ExitError, "%s: image %q lacks the module %s. Add it to requirements.txt, build the image again, and type the same", text, r.looksIn, oneLine(trouble.Module))
	default:
		return exitf(ExitError, "%s failed before it asked for its flags: %s. Trials have no network, and write to /trial/out, /tmp and their working directory alone. Read the flags before the work, or mend it, and type the same again",
			r.script, text)
	}
}
