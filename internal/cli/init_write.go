package cli

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/script"
	"github.com/berthml/berth/internal/spec"
)

// failed says why a script did not come to its flags, when it did not. Without
// its libraries it need not: the Dockerfile is written, and the image comes first.
func (r *initiation) failed(report script.Report, looked berth.Looked, ran bool) error {
	trouble := report.Trouble

	switch {
	case report.Framework != "" || report.Ended:
		return nil
	case r.stub && (len(report.Stubbed) > 0 || trouble != nil && trouble.Module != ""):
		why := "it does not run without them"
		if trouble != nil {
			why = quoteTrouble(trouble)
		}

		if err := r.dockerfile(); err != nil {
			return err
		}

		return exitf(ExitError, "%s needs its libraries before it says its flags (%s). Build the image, then look into it:\n  %s\n  %s",
			r.script, why, r.buildCommand(), r.again())
	case looked.TimedOut:
		return exitf(ExitTimeout, "%s did not ask for its flags within %s, and was stopped; type `%s` if its imports take that long, "+
			"else read the flags before the work begins", r.script, r.timeout, r.again("--timeout", "10m"))
	case looked.OutOfMemory:
		return exitf(ExitError, "%s used more than %s before it asked for its flags, and was stopped; read the flags before the data", r.script, berth.BytesText(lookMemory))
	case trouble == nil && ran:
		return exitf(ExitError, "%s ended (exit code %d) before it asked for its flags, without a word to Python; its last output: %s",
			r.script, looked.ExitCode, first(lastWords(looked.Stderr), none))
	case trouble == nil:
		return nil
	case trouble.Type == "ImportError" && strings.Contains(trouble.Message, "relative import"):
		stem := strings.TrimSuffix(filepath.Base(r.source.path), ".py")
		pkg := filepath.Base(r.source.dir)

		return exitf(ExitError, "%s: it is a module of the package %s, which `python3 -m %s.%s` runs. Write a script beside that directory, such as run_%s.py with "+
			"`import runpy, %s; runpy.run_module(\"%s.%s\", run_name=\"__main__\")`, and type `berth init` with it",
			quoteTrouble(trouble), pkg, pkg, stem, stem, pkg, pkg, stem) // the import tells init that the script needs the package
	case trouble.Type == "PermissionError" && trouble.Place == "":
		return exitf(ExitError, "%s cannot be read by a user without rights, as trials are (%s); type `%s` and the same again",
			r.script, oneLine(trouble.Message), script.ShellCommand("chmod", "a+rX", r.source.dir, r.source.path))
	case trouble.Module != "" && trouble.Type == "ModuleNotFoundError":
		return r.lacks(trouble)
	default:
		return exitf(ExitError, "%s failed before it asked for its flags: %s. Trials have no network, and write to /trial/out, /tmp and their working directory alone. Read the flags before the work, or mend it, and type the same again",
			r.script, quoteTrouble(trouble))
	}
}

// lacks says which module the image has not.
func (r *initiation) lacks(trouble *script.Trouble) error {
	return exitf(ExitError, "%s: image %q lacks the module %s. Add it to requirements.txt%s, build the image again, and type the same",
		quoteTrouble(trouble), r.looksIn, oneLine(trouble.Module), orInstall(trouble.Module))
}

// orInstall names the package of a module, where it is known.
func orInstall(module string) string {
	if name := script.Distribution(module); name != "" {
		return " (or `RUN pip install " + name + "` in the Dockerfile)"
	}

	return ""
}

// lastWords are the end of an output.
func lastWords(output []byte) string {
	const few = 300

	return oneLine(string(output[max(0, len(output)-few):]))
}

// quoteTrouble is such as train.py:3: ModuleNotFoundError: No module named 'x'.
func quoteTrouble(t *script.Trouble) string {
	text := oneLine(t.Type + ": " + t.Message)
	if t.Place != "" {
		text = oneLine(t.Place) + ": " + text
	}

	return text
}

// buildCommand makes the image from where the user is.
func (r *initiation) buildCommand() string {
	return script.ShellCommand("docker", "build", "-t", r.own(), r.where())
}

// where is the script's directory, as the user typed it where that is no link.
func (r *initiation) where() string {
	typed := filepath.Dir(r.script)
	if resolved, err := filepath.EvalSymlinks(typed); err == nil {
		if resolved, err = filepath.Abs(resolved); err == nil && resolved == r.source.dir {
			return typed
		}
	}

	return r.source.dir
}

// dockerfile writes the Dockerfile beside the script. One that a person wrote, or
// may have changed, is kept.
func (r *initiation) dockerfile() error {
	recipe := script.Recipe{
		From: r.base, Image: r.own(), Script: filepath.Base(r.source.path), Files: r.source.files,
		HasFile: r.source.requirements, Packages: script.Requirements(r.source.all, r.source.local()),
		Unknown: script.Unknown(r.source.all, r.source.local()),
	}

	if r.image != "" {
		recipe.From, recipe.AddsOnly, recipe.User = r.image, true, r.facts.User
	}

	file, old, keep := r.present()
	if keep {
		say(r.cmd.OutOrStdout(), "kept %s, which is there already\n", file)

		switch placed, copied := r.placed(); {
		case !copied:
			say(r.cmd.OutOrStdout(), "it does not copy %s: add `%s` to it%s\n", recipe.Script, script.CopyLine(recipe.Script), orForce(old))
		case placed == "":
			say(r.cmd.OutOrStdout(), "where it puts %s cannot be told; the sweep file has /app/%s: write `WORKDIR /app` above its COPY, or mend the sweep file's command\n",
				recipe.Script, recipe.Script)
		}

		return nil
	}

	if old != "" {
		recipe.Own = script.OwnLines(old, recipe)
	}

	if err := os.WriteFile(file, []byte(recipe.Dockerfile()), 0o644); err != nil { //nolint:gosec // G306: as a person would write it
		return exitf(ExitError, "writing the Dockerfile: %w", err)
	}

	with := recipe.From
	switch {
	case recipe.AddsOnly:
	case recipe.HasFile:
		with += ", requirements.txt"
	case len(recipe.Packages) > 0:
		with += ", " + strings.Join(recipe.Packages, " ") + " (a guess)"
	}

	say(r.cmd.OutOrStdout(), "wrote %s: %s, and %s\n", file, with, strings.Join(append([]string{recipe.Script}, recipe.Files...), " "))

	if len(recipe.Own) > 0 {
		say(r.cmd.OutOrStdout(), "kept what you added to it: %s\n", plural(len(recipe.Own), "line", "lines"))
	}

	return nil
}

// present is the Dockerfile that is there, and whether it stays; no text = there is none.
func (r *initiation) present() (file, text string, keep bool) {
	file = filepath.Join(r.where(), "Dockerfile")
	old, err := os.ReadFile(file) //nolint:gosec // G304: beside the user's own script

	return file, string(old), err == nil && (!r.force || !strings.HasPrefix(string(old), script.DockerfileMark))
}

// placed is where the Dockerfile that stays puts the script.
func (r *initiation) placed() (file string, copied bool) {
	_, text, keep := r.present()
	if !keep {
		return "", false
	}

	return script.Placed(text, filepath.Base(r.source.path), map[string]string{r.looksIn: first(r.facts.Workdir, "/")})
}

// orForce names the other way, where there is one.
func orForce(dockerfile string) string {
	if strings.HasPrefix(dockerfile, script.DockerfileMark) {
		return ", or write it anew with --force"
	}

	return ""
}

// write writes the files and says what to type next.
func (r *initiation) write(report script.Report) error {
	plan := r.plan(report)

	next := []string{}
	if r.builds(report) {
		if report.Look.Differs != "" {
			say(r.cmd.OutOrStdout(), "image %s has another %s at %s, or other modules beside it; the image to build has yours\n",
				r.looksIn, filepath.Base(r.source.path), report.Look.Differs)
		}

		if err := r.dockerfile(); err != nil {
			return err
		}

		next = append(next, r.buildCommand())
		plan.ImageNote = "built by: " + r.buildCommand()
	}

	text := plan.SweepFile()
	if _, err := spec.Decode([]byte(text), "application/yaml"); err != nil {
		return fmt.Errorf("this is a mistake of Berth's, please report it with the script's flags: the sweep file that it made is refused: %w\n%s", err, text)
	}

	if err := os.WriteFile(r.output, []byte(text), 0o644); err != nil { //nolint:gosec // G306: as a person would write it
		return exitf(ExitError, "writing the sweep file: %w", err)
	}

	out := r.cmd.OutOrStdout()
	say(out, "wrote %s: %s\n", r.output, contents(plan, report))

	if len(report.Stubbed) > 0 {
		say(out, "not in %s, so made up for this look: %s\n", r.looksIn, strings.Join(report.Stubbed, ", "))
	}

	r.sayNext(plan, report, append(next, script.ShellCommand("berth", "sweep", "submit", "-f", r.output, "--wait")))

	return nil
}

// builds reports whether the sweep needs an image that is not there yet.
func (r *initiation) builds(report script.Report) bool {
	return r.source.dir != "" && report.Look.InImage == ""
}

func (r *initiation) plan(report script.Report) script.Plan {
	_, _, chosen, others := script.Choose(report.Flags)
	p := script.Plan{
		Script: r.script, Name: r.slug(), Image: r.image, Python: first(r.python, pythons[0]),
		Others: others, Subcommand: strings.Fields(chosen), Objective: script.GuessObjective(r.source.all), FromHelp: report.Framework == helpText, Trials: r.trials,
	}

	switch {
	case r.source.dir == "":
		p.Path = r.script
	case report.Look.InImage != "":
		p.Path = report.Look.InImage
		p.Image = r.looksIn
	default:
		p.Path, p.Workdir, p.Image = "/app/"+filepath.Base(r.source.path), "/app", r.own()
		if r.image == "" {
			p.Python = pythons[0]
		}

		if placed, _ := r.placed(); placed != "" {
			p.Path = placed

			if path.Dir(placed) != p.Workdir {
				p.Workdir = "" // the Dockerfile's own
			}
		}
	}

	dir := path.Dir(p.Path)
	if r.source.dir == "" {
		dir = r.facts.Workdir // what the driver copied
	}

	own, behind, _, _ := script.Choose(script.Relocate(report.Flags, dir))
	p.Guesses = script.GuessFlags(append(own, behind...))

	return p
}

// contents says in one line what a sweep file has.
func contents(p script.Plan, report script.Report) string {
	if report.Framework == "" {
		return "a placeholder, as no flags were found"
	}

	var searched, fixed, left []string

	for _, g := range p.Guesses {
		switch {
		case g.Searched:
			searched = append(searched, g.Name)
		case g.Left:
			left = append(left, g.Name)
		default:
			fixed = append(fixed, g.Name)
		}
	}

	parts := []string{}

	for _, group := range []struct {
		what  string
		names []string
	}{{"searched", searched}, {"fixed", fixed}, {"left out", left}} {
		if len(group.names) > 0 {
			parts = append(parts, group.what+": "+strings.Join(group.names, ", "))
		}
	}

	flags := 0

	for _, f := range report.Flags {
		if f.Form != script.FormCommand {
			flags++
		}
	}

	parts = append([]string{plural(flags, "flag", "flags") + " of " + report.Framework}, parts...)

	return strings.Join(parts, "; ")
}

func (r *initiation) sayNext(p script.Plan, report script.Report, next []string) {
	out := r.cmd.OutOrStdout()

	if report.Framework == "" {
		why := "the script reads no flags that Berth knows (argparse, click, typer, absl, or a text of --help)"
		if r.looksIn == "" {
			why = fmt.Sprintf("neither image %s nor %s is here to run it in: type `%s`, then `%s`", r.own(), r.base, r.buildCommand(), r.again("--force"))
		}

		if report.OwnArgs {
			why = "the script parses a list of its own, not its command line: call parse_args() without arguments"
		}

		say(out, "\nNo flags were found: %s.\n", why)
		say(out, "Write into %s what to search; a trial finds each value in its environment, too, such as TRIAL_PARAM_LR.\n", r.output)
	}

	if report.More {
		say(out, "\nThe script reads its flags in parts, and more may follow: compare with its --help.\n")
	}

	if fill := slices.Collect(filled(p.Guesses)); len(fill) > 0 {
		say(out, "\nFILL IN, as the script requires it and has no default: %s\n", strings.Join(fill, ", "))
	}

	objective := fmt.Sprintf("%s %s (%s)", p.Objective.Goal, p.Objective.Metric, p.Objective.Why)
	if !p.Objective.Sure {
		objective = "a placeholder: no metric was found in the script; write the name that it prints"
	}

	say(out, "objective: %s\n\nRead the guesses in %s, then type:\n", objective, r.output)

	for _, line := range next {
		say(out, "  %s\n", line)
	}

	say(out, "It ends with the command that fetches the best trial's files. For a look before it, type `%s`,\n"+
		"and `%s` for one trial. Where no Berth runs yet, `berth dev` in another terminal starts it.\n",
		script.ShellCommand("berth", "image", "check", p.Image), script.ShellCommand("berth", "try", "-f", r.output))
}

// filled are the parameters that the author must write.
func filled(guesses []script.Guess) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, g := range guesses {
			if g.Fill && !yield(g.Name) {
				return
			}
		}
	}
}
