package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthml/berth/internal/sweepfile/script"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// writeDockerfile writes the Dockerfile beside the script. It keeps an existing
// one without reading it. Modules are the ones missing in the base image.
func (r *initiation) writeDockerfile(modules []string) error {
	out := r.cmd.OutOrStdout()
	name := filepath.Base(r.source.path)

	file := r.dockerfile()
	if _, err := os.Lstat(file); err == nil {
		say(out, "kept %s, which is there already: it must have `WORKDIR /app` and copy %s there\n", file, name)

		return nil
	}

	recipe := script.Recipe{
		From: first(r.image, r.base), Image: r.ownImage(), Script: name, Files: r.source.files, User: r.user,
		Requirements: r.source.requirements && r.image == "",
	}
	if r.image == "" {
		recipe.Packages, recipe.Unknown = script.Requirements(modules)
	}

	if err := os.WriteFile(file, []byte(recipe.Dockerfile()), 0o644); err != nil { //nolint:gosec // G306: as a person would write it
		return exitf(ExitError, "writing the Dockerfile: %w", err)
	}

	with := recipe.From
	switch {
	case recipe.Requirements:
		with += ", requirements.txt"
	case len(recipe.Packages) > 0:
		with += ", " + strings.Join(recipe.Packages, " ") + " (a guess)"
	}

	say(out, "wrote %s: %s, and %s\n", file, with, strings.Join(append([]string{name}, recipe.Files...), " "))

	return nil
}

func (r *initiation) dockerfile() string { return filepath.Join(r.where(), "Dockerfile") }

// write writes the files and prints the next commands.
func (r *initiation) write(report script.Report) error {
	if err := r.writeDockerfile(report.Stubbed); err != nil {
		return err
	}

	flags, chosen, others := script.Choose(report.Flags)
	plan := script.Plan{
		Script: r.script, Name: r.source.slug(), Image: r.ownImage(), Build: r.buildCommand(), Python: r.python, File: filepath.Base(r.source.path),
		Subcommand: strings.Fields(chosen), Others: others, Guesses: script.GuessFlags(flags), Objective: script.GuessObjective(r.source.all), Trials: r.trials,
	}

	text := plan.SweepFile()
	if _, err := spec.Decode([]byte(text), "application/yaml"); err != nil {
		return fmt.Errorf("this is a mistake of Berth's, please report it with the script's flags: the sweep file that it made is refused: %w\n%s", err, text)
	}

	if err := os.WriteFile(r.output, []byte(text), 0o644); err != nil { //nolint:gosec // G306: as a person would write it
		return exitf(ExitError, "writing the sweep file: %w", err)
	}

	say(r.cmd.OutOrStdout(), "wrote %s: %s\n", r.output, contents(plan, report))

	if len(report.Stubbed) > 0 {
		say(r.cmd.OutOrStdout(), "not in %s, so made up for this look: %s\n", r.looksIn, strings.Join(report.Stubbed, ", "))
	}

	r.sayNext(plan, report)

	return nil
}

// contents is a sweep file's content in one line.
func contents(p script.Plan, report script.Report) string {
	if report.Framework == "" {
		return "nothing is searched yet, as no flags were found"
	}

	names := map[string][]string{}

	for _, g := range p.Guesses {
		what := "fixed"

		switch {
		case g.Searched:
			what = "searched"
		case g.Left():
			what = "at the script's default"
		}

		names[what] = append(names[what], g.Name)
	}

	parts := []string{plural(len(p.Guesses), "flag", "flags") + " of " + report.Framework}

	for _, what := range []string{"searched", "fixed", "at the script's default"} {
		if len(names[what]) > 0 {
			parts = append(parts, what+": "+strings.Join(names[what], ", "))
		}
	}

	return strings.Join(parts, "; ")
}

func (r *initiation) sayNext(p script.Plan, report script.Report) {
	out := r.cmd.OutOrStdout()

	switch {
	case report.Ended == script.OwnArguments:
		say(out, "\nNo flags were found: the script parses a list of its own, not its command line: call parse_args() without arguments.\n")
	case report.Framework == "":
		say(out, "\nNo flags were found: the script reads none that Berth knows (argparse, click, typer, absl).\n"+
			"Write into %s what to search; a trial finds each value in its environment, too, such as TRIAL_PARAM_LR.\n", r.output)
	case report.More:
		say(out, "\nThe script reads its flags in parts, and more may follow: compare with its --help.\n")
	}

	var fill, searched []string

	for _, g := range p.Guesses {
		if g.Fill {
			fill = append(fill, g.Name)
		}

		if g.Searched {
			searched = append(searched, g.Name)
		}
	}

	if len(fill) > 0 {
		say(out, "\nFILL IN, as the script requires it and has no default: %s\n", strings.Join(fill, ", "))
	}

	if len(searched) == 0 {
		say(out, "\nFILL IN what to search: as it is, %s makes one trial.\n", r.output)
	}

	if p.Objective.Metric == "" {
		say(out, "\nFILL IN the objective: no metric was found in the script; write the name that it prints.\n")
	} else {
		say(out, "objective: %s %s (%s)\n", p.Objective.Goal, p.Objective.Metric, p.Objective.Why)
	}

	say(out, "\nRead the guesses in %s, then type:\n  %s\n  %s\n", r.output, r.buildCommand(), script.ShellCommand("berth", "sweep", "submit", "-f", r.output, "--wait"))
	say(out, "It ends with the command that fetches the best trial's files. For a look before it, type `%s`,\n"+
		"and `%s` for one trial. Where no Berth runs yet, `berth dev` in another terminal starts it.\n",
		script.ShellCommand("berth", "image", "check", p.Image), script.ShellCommand("berth", "try", "-f", r.output))
}
