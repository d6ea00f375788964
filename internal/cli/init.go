package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/script"
)

const (
	defaultBase = "python:3.11-slim"
	mostTrials  = 100_000 // of a sweep: limits.max_trials
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
	facts   berth.ImageFacts
	python  string
	took    time.Duration
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
lacks is made up. A script that is in an image only is named by its path there.`,
		Example: "  berth init train.py\n  berth init train.py --image tensorflow/tensorflow:2.19.0 -o mnist.yaml",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			run.cmd, run.script = cmd, args[0]

			return run.run(o)
		},
	}
	cmd.Flags().StringVar(&run.image, "image", "", "the image with the script's libraries, or with the script; default: one that a Dockerfile makes")
	cmd.Flags().StringVar(&run.base, "base", defaultBase, "what the Dockerfile begins with when there is no --image")
	cmd.Flags().StringVarP(&run.output, "output", "o", "sweep.yaml", "the sweep file to write")
	cmd.Flags().IntVar(&run.trials, "trials", script.UsualTrials, "how many trials the sweep file asks for")
	cmd.Flags().BoolVar(&run.force, "force", false, "overwrite the sweep file, and a Dockerfile that berth init wrote")
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

	if err := r.read(); err != nil {
		return err
	}

	if _, err := os.Stat(r.output); err == nil && !r.force {
		return exitf(ExitConflict, "%s is there already; write elsewhere with `-o OTHER.yaml`, or overwrite it with --force", r.output)
	}

	if info, err := os.Stat(filepath.Dir(r.output)); err != nil || !info.IsDir() {
		return exitf(ExitUsage, "there is no directory %s for the sweep file; type `%s` and the same again", filepath.Dir(r.output), script.ShellCommand("mkdir", "-p", filepath.Dir(r.output)))
	}

	docker, err := o.openDocker()
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }()

	r.docker = docker

	if err := r.chooseImage(); err != nil {
		return err
	}

	if r.source == nil { // the script is in the image only
		if err := r.readInImage(); err != nil {
			return err
		}
	}

	report, err := r.learn()
	if err != nil {
		return err
	}

	return r.write(report)
}

// again is the command that was typed, with flags set.
func (r *initiation) again(set ...string) string {
	args := []string{"berth", "init", r.script}

	for _, f := range []struct{ name, value, usual string }{
		{"--image", r.image, ""},
		{"--base", r.base, defaultBase},
		{"-o", r.output, "sweep.yaml"},
		{"--trials", strconv.Itoa(r.trials), strconv.Itoa(script.UsualTrials)},
		{"--timeout", r.timeout.String(), lookTimeout.String()},
	} {
		if f.value != f.usual && !slices.Contains(set, f.name) {
			args = append(args, f.name, f.value)
		}
	}

	args = append(args, set...)
	if r.force && !slices.Contains(set, "--force") {
		args = append(args, "--force")
	}

	return script.ShellCommand(args...)
}

// own is the name of the image that the Dockerfile makes.
func (r *initiation) own() string { return r.slug() + ":1" }

// slug names the sweep and its image after the script and its directory.
func (r *initiation) slug() string {
	file := r.script
	if r.source != nil {
		file = r.source.path
	}

	stem := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))

	return slugOf(filepath.Base(filepath.Dir(file)) + "-" + stem)
}

// chooseImage finds the image to look in.
func (r *initiation) chooseImage() error {
	ctx := r.cmd.Context()

	if r.image != "" {
		facts, err := r.docker.Facts(ctx, r.image)
		if err != nil {
			return dockerError(r.image, err)
		}

		r.looksIn, r.facts = r.image, facts

		return nil
	}

	for _, candidate := range []string{r.own(), r.base} {
		facts, err := r.docker.Facts(ctx, candidate)

		switch {
		case err == nil:
			r.looksIn, r.facts, r.stub = candidate, facts, candidate == r.base

			return nil
		case berth.KindOf(err) == berth.KindUnavailable, ctx.Err() != nil:
			return dockerError(candidate, err)
		}
	}

	return nil // neither is here: the Dockerfile comes first
}

// withLimit runs Python with arguments, for so many seconds at most: a container
// ends by itself when berth was killed.
const withLimit = "import os,signal,sys; signal.alarm(int(sys.argv[1])); os.execv(sys.executable, [sys.executable] + sys.argv[2:])"

// look runs the driver of flags, or with help alone the script's own --help.
func (r *initiation) look(options script.Options, help bool) (berth.Looked, error) {
	options.Limit = int(r.timeout.Seconds()) + lookGrace // the container is gone before; it ends by itself when berth was killed
	look := berth.Look{Image: r.looksIn, Timeout: r.timeout, User: caller()}

	if r.source != nil && r.source.dir != "" {
		look.Mounts = []berth.Mount{{Source: r.source.dir, Target: script.ScriptMount, ReadOnly: true}}
		look.Workdir, options.Directory = script.ScriptMount, script.ScriptMount
	}

	args, err := json.Marshal(options)
	if err != nil {
		return berth.Looked{}, err
	}

	command := []string{"-c", script.FlagsDriver(), string(args)}
	if help {
		command = []string{"-c", withLimit, strconv.Itoa(options.Limit), options.Script, "--help"}
	}

	looked, python, err := lookWithPython(r.cmd.Context(), r.docker, look, command...)
	if err != nil && !looked.Foreign && (looked.NoUser || !noProgram(looked, err)) {
		return looked, dockerError(r.looksIn, err)
	}

	if looked.Foreign {
		return looked, exitf(ExitError, "image %q is for another kind of processor than this machine's; type `%s`", r.looksIn, script.ShellCommand("berth", "image", "check", r.looksIn))
	}

	if python == "" {
		return looked, exitf(ExitError, "image %q has no python3 and no python; name an image with Python: `%s`", r.looksIn, r.again("--image", "IMAGE"))
	}

	r.python, r.took = python, looked.Took

	return looked, nil
}

// options are what the driver is told of the script.
func (r *initiation) options() script.Options {
	if r.source.dir == "" { // in the image only
		return script.Options{Script: r.script}
	}

	name := filepath.Base(r.source.path)
	sum := sha256.Sum256(r.source.text)
	options := script.Options{Script: script.ScriptMount + "/" + name, SHA256: hex.EncodeToString(sum[:]), Modules: r.source.hashes}

	for _, dir := range []string{r.facts.Workdir, "/app", "/workspace", "/work", "/src", "/code", "/opt/app", "/opt/ml/code", "/"} {
		if dir != "" {
			options.Candidates = append(options.Candidates, path.Join(dir, name))
		}
	}

	return options
}

// learn runs the script until it reads its flags. A script that has none is not run.
func (r *initiation) learn() (script.Report, error) {
	if r.looksIn == "" {
		return script.Report{}, nil
	}

	options := r.options()
	options.Stub = r.stub
	options.Run = script.AsksForFlags(r.source.all)
	options.Parses = script.Parses(r.source.all)

	if options.Run {
		say(r.cmd.ErrOrStderr(), "reading the flags of %s in a container of %s; its imports may take 10 s or more\n", r.script, r.looksIn)
	}

	looked, err := r.look(options, false)
	if err != nil {
		return script.Report{}, err
	}

	report := script.ReadReport(looked.Stdout)
	if err := r.failed(report, looked, options.Run); err != nil {
		return report, err
	}

	// A script that ran to its end without asking would do so again.
	if report.Framework == "" && (report.Refused || script.PrintsHelp(r.source.all)) && !r.stub && !report.OwnArgs {
		say(r.cmd.ErrOrStderr(), "it asks none of argparse, click and absl; reading its --help\n")

		looked, err := r.look(options, true)
		if err != nil {
			return report, err
		}

		if flags := script.FlagsOfHelp(string(looked.Stdout) + "\n" + string(looked.Stderr)); len(flags) > 0 {
			report.Framework, report.Flags = helpText, flags
		} else if looked.TimedOut {
			return report, exitf(ExitTimeout, "%s printed no flags for --help within %s, and was stopped; read the flags before the work begins", r.script, r.timeout)
		} else if missing := script.Missing(looked.Stderr); missing != nil && looked.ExitCode != 0 {
			return report, r.lacks(missing)
		}
	}

	return report, nil
}

// helpText is the framework of flags that were read from --help.
const helpText = "--help"
