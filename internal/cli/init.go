package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/script"
)

const scriptMount = "/berth/script" // where a look finds the script's directory

// initiation is one run of `berth init`.
type initiation struct {
	cmd    *cobra.Command
	docker LocalDocker
	source *source

	image   string // --image; empty = none was given
	base    string
	output  string
	force   bool
	trials  int
	timeout time.Duration

	looksIn string // the image of the look
	stub    bool   // it lacks the libraries, which are made up
	user    string // of the image that was given
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
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			run.cmd = cmd

			if run.source, err = readSource(args[0]); err != nil {
				return err
			}

			if _, err := os.Stat(run.output); err == nil && !run.force {
				return exitf(ExitConflict, "%s is there already; write elsewhere with `-o OTHER.yaml`, or overwrite it with --force", run.output)
			}

			if run.docker, err = o.docker(); err != nil {
				return err
			}
			defer func() { _ = run.docker.Close() }()

			return run.writeFiles()
		},
	}
	cmd.Flags().StringVar(&run.image, "image", "", "the image with the script's libraries; default: one that the Dockerfile makes")
	cmd.Flags().StringVar(&run.base, "base", "python:3.11-slim", "what the Dockerfile begins with when there is no --image")
	cmd.Flags().StringVarP(&run.output, "output", "o", "sweep.yaml", "the sweep file to write")
	cmd.Flags().IntVar(&run.trials, "trials", 20, "how many trials the sweep file asks for")
	cmd.Flags().BoolVar(&run.force, "force", false, "overwrite the sweep file")
	cmd.Flags().DurationVar(&run.timeout, "timeout", lookTimeout, "how long the script may take to read its flags")
	cmd.SetFlagErrorFunc(usageFlags)

	return cmd
}

// writeFiles learns the flags, writes the files, and prints the next commands.
func (r *initiation) writeFiles() error {
	report, err := r.learnFlags()
	if err != nil {
		return err
	}

	plan := script.Plan{
		Script: r.source.path, Name: r.source.name, Image: r.source.image, Build: r.source.build, File: r.source.files[0],
		Guesses: script.GuessFlags(report.Flags), Objective: script.GuessObjective(r.source.text), Trials: r.trials,
	}

	if err := os.WriteFile(r.output, []byte(plan.SweepFile()), 0o644); err != nil { //nolint:gosec // G306: as a person would write it
		return exitf(ExitError, "writing the sweep file: %w", err)
	}

	if err := r.writeDockerfile(report.Stubbed); err != nil {
		return err
	}

	r.sayNext(plan, report)

	return nil
}

// learnFlags runs the script in its image until it reads its flags. A script that has
// none is not run.
func (r *initiation) learnFlags() (report script.Report, err error) {
	ctx := r.cmd.Context()
	r.looksIn = cmp.Or(r.image, r.source.image)
	facts, err := r.docker.ResolveImage(ctx, r.looksIn)

	if _, missing := os.Stat(r.source.dockerfile); r.image == "" && (err != nil || missing != nil) { // else it is built, and has the libraries
		r.looksIn, r.stub = r.base, true
		facts, err = r.docker.ResolveImage(ctx, r.looksIn)
	}

	if err != nil {
		return report, dockerError(r.looksIn, err)
	}

	if r.user = facts.User; !script.AsksForFlags(r.source.text) {
		report.Ended = "it imports none of argparse, click, typer and absl, and was not run"
		if report.Flags = script.Variables(r.source.text); len(report.Flags) > 0 {
			report.Framework = script.Environment
		}

		return report, nil
	}

	say(r.cmd.ErrOrStderr(), "reading the flags of %s in a container of %s; its imports may take 10 s or more\n", r.source.path, r.looksIn)

	dir, err := filepath.Abs(r.source.dir)
	args, failed := json.Marshal(map[string]any{"directory": scriptMount, "script": r.source.files[0], "stub": r.stub, "limit": int(r.timeout.Seconds()) + lookGrace})

	if err := errors.Join(err, failed); err != nil {
		return report, err
	}

	looked, err := lookWithPython(ctx, r.docker, berth.Look{
		Image: r.looksIn, Timeout: r.timeout, User: caller(), Workdir: scriptMount,
		Mounts: []berth.Mount{{Source: dir, Target: scriptMount, ReadOnly: true}},
	}, script.FlagsDriver, string(args))
	if err != nil {
		return report, err
	}

	report, found := script.ReadReport[script.Report](looked.Stdout)
	if !found || report.Trouble != "" {
		return report, r.explainTrouble(report, looked)
	}

	return report, nil
}

// explainTrouble says why a script did not come to its flags. Without its libraries it need
// not: the Dockerfile is written, and the image comes first.
func (r *initiation) explainTrouble(report script.Report, looked berth.Looked) error {
	switch {
	case looked.TimedOut:
		return exitf(ExitTimeout, "%s did not ask for its flags within %s, and was stopped; type the same with `--timeout 10m` if its imports take that long, "+
			"else read the flags before the work begins", r.source.path, r.timeout)
	case looked.OutOfMemory:
		return exitf(ExitError, "%s used more than %s before it asked for its flags, and was stopped; read the flags before the data", r.source.path, berth.BytesText(lookMemory))
	case report.Trouble == "":
		return exitf(ExitError, "%s ended (exit code %d) before it asked for its flags, without a word to Python; its last output: %s", r.source.path, looked.ExitCode, lastWords(looked))
	case len(report.Stubbed) > 0:
		if err := r.writeDockerfile(report.Stubbed); err != nil {
			return err
		}

		return exitf(ExitError, "%s needs its libraries before it says its flags (%s). Build the image, then type the same again, which looks into it:\n  %s",
			r.source.path, oneLine(report.Trouble), r.source.build)
	case report.Missing != "":
		return exitf(ExitError, "%s: image %q lacks the module %s. Add it to the image, and type the same again", oneLine(report.Trouble), r.looksIn, oneLine(report.Missing))
	default:
		return exitf(ExitError, "%s failed before it asked for its flags: %s. Trials have no network and no rights, and write to /trial/out, /tmp and their working directory alone. "+
			"Read the flags before the work, or mend it, and type the same again", r.source.path, oneLine(report.Trouble))
	}
}

// writeDockerfile writes the Dockerfile beside the script. It keeps an existing
// one without reading it. Modules are the ones missing in the base image.
func (r *initiation) writeDockerfile(modules []string) error {
	out, file := r.cmd.OutOrStdout(), r.source.dockerfile

	if _, err := os.Lstat(file); err == nil {
		say(out, "kept %s, which is there already: it must have `WORKDIR /app` and copy %s there\n", file, r.source.files[0])

		return nil
	}

	_, missing := os.Stat(filepath.Join(r.source.dir, "requirements.txt"))
	recipe := script.Recipe{
		From: r.looksIn, Image: r.source.image, Files: r.source.files, User: r.user, Missing: modules, Requirements: r.image == "" && missing == nil,
	}

	if err := os.WriteFile(file, []byte(recipe.Dockerfile()), 0o644); err != nil { //nolint:gosec // G306: as a person would write it
		return exitf(ExitError, "writing the Dockerfile: %w", err)
	}

	say(out, "wrote %s: %s, and %s\n", file, r.looksIn, strings.Join(r.source.files, " "))

	return nil
}

// sayNext says what is in the sweep file, what is missing, and what to type.
func (r *initiation) sayNext(p script.Plan, report script.Report) {
	line := func(there bool, format string, args ...any) {
		if there {
			say(r.cmd.OutOrStdout(), format+"\n", args...)
		}
	}

	names := map[string][]string{}
	for _, g := range p.Guesses {
		names[g.Treatment] = append(names[g.Treatment], g.Name)
	}

	noun := "flag"
	if report.Framework == script.Environment {
		noun = "variable"
	}

	parts := []string{plural(len(p.Guesses)-len(names[script.Command]), noun, noun+"s") + " of " + report.Framework}

	for _, what := range []string{script.Searched, script.Fixed, script.Left, script.Fill, script.Command} {
		if len(names[what]) > 0 {
			parts = append(parts, what+": "+strings.Join(names[what], ", "))
		}
	}

	line(report.Framework != "", "wrote %s: %s", r.output, strings.Join(parts, "; "))
	line(report.Framework == "", "wrote %s. No flags were found: %s.\n%s", r.output, report.Ended,
		cmp.Or(script.ByHand(r.source.text), `A value can come from the environment, too: environment_variables: {LR: "{{lr}}"}.`))
	line(len(report.Stubbed) > 0, "not in %s, so made up for this look: %s", r.looksIn, strings.Join(report.Stubbed, ", "))
	line(report.More, "The script reads its flags in parts, and more may follow: compare with its --help.")
	line(len(names[script.Searched]) == 0, "FILL IN what to search: as it is, %s makes one trial.", r.output)
	line(true, "objective: %s %s (%s)", p.Objective.Goal, p.Objective.Metric, p.Objective.Why)
	line(true, "\nRead the guesses in %s, then type:\n  %s\n  %s\nIt ends with the command that fetches the best trial's files. For a look before it, type `%s`,\n"+
		"and `%s` for one trial. Where no Berth runs yet, `berth dev` in another terminal starts it.",
		r.output, p.Build, script.ShellCommand("berth", "sweep", "submit", "-f", r.output, "--wait"),
		script.ShellCommand("berth", "image", "check", p.Image), script.ShellCommand("berth", "try", "-f", r.output))
}
