package script

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/berthml/berth"
)

// Plan is the input of a sweep file.
type Plan struct {
	Script     string // as the user named it
	Name       string // of the sweep
	Image      string
	Build      string   // the command that builds the image
	Python     string   // the program: python3 or python
	Subcommand []string // chosen of the script's; nil = it has none
	Others     []string // subcommands that were not chosen
	File       string   // the script's file name
	Guesses    []Guess
	Objective  Objective
	Trials     int // of the search
}

// UsualTrials are enough for a first look.
const UsualTrials = 20

// trains are the words for training, of subcommands, best first.
var trains = []string{"train", "fit", "run", "main"}

// Choose returns the flags of the script itself and of the subcommand that trains,
// that subcommand, and the names of the others.
func Choose(flags []Flag) (own []Flag, chosen string, others []string) {
	for _, f := range flags {
		if f.Form == FormCommand {
			others = slices.DeleteFunc(others, func(outer string) bool { return strings.HasPrefix(f.Command, outer+" ") }) // it needs another word behind it
			others = append(others, f.Command)
		}
	}

	for _, word := range slices.Backward(trains) {
		if at := slices.IndexFunc(others, func(name string) bool { return slices.Contains(strings.Fields(name), word) }); at >= 0 {
			chosen = others[at]
		}
	}

	if chosen == "" && len(others) > 0 {
		chosen = others[0]
	}

	for _, f := range flags {
		if f.Form != FormCommand && (f.Command == "" || f.Command == chosen) {
			own = append(own, f)
		}
	}

	return own, chosen, slices.DeleteFunc(others, func(name string) bool { return name == chosen })
}

// SweepFile writes the plan as a commented sweep file.
func (p Plan) SweepFile() string {
	var b strings.Builder

	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("# Written by `berth init %s`. Read every line with \"guess:\", and change what is wrong.", comment(ShellCommand(p.Script)))
	line("# What is wrong with a change of it, if anything: `berth sweep validate -f FILE`.")
	line("version: 1\nname: %s", p.Name)
	line("image: %s   # built by: %s", p.Image, comment(p.Build))
	p.command(line)
	line("workdir: /app")
	p.parameters(line)
	line("search: {algorithm: random, seed: 1}")

	metric, why := p.Objective.Metric, "guess: "+p.Objective.Why
	if metric == "" {
		metric, why = placeholder, "FILL IN the name of a result that the script prints, such as val_loss=0.4, and its goal: minimize or maximize"
	}

	line("objective: {metric: %s, goal: %s}   # %s", yaml(berth.StringValue(metric)), p.Objective.Goal, why)
	line("limits: {max_trials: %d, max_failed_trials: 3, max_trial_duration: 1h}   # guess: enough for a first look", p.Trials)
	line("# Metrics are what the script prints, such as val_loss=0.4 or {\"val_loss\": 0.4}; Keras reports its epochs by itself.")

	return b.String()
}

func (p Plan) command(line func(string, ...any)) {
	line("command:\n  - %s\n  - %s", p.Python, yaml(berth.StringValue("/app/"+p.File)))

	write := func(behind bool) {
		for _, g := range p.Guesses {
			for _, element := range g.Elements {
				if g.behind == behind {
					line("  - %s", yaml(berth.StringValue(element)))
				}
			}
		}
	}

	write(false)

	for _, word := range p.Subcommand {
		others := ""
		if len(p.Others) > 0 {
			others = "; others: " + comment(strings.Join(p.Others, ", "))
		}

		line("  - %s   # guess: the subcommand that trains%s", yaml(berth.StringValue(word)), others)
	}

	write(true)
}

func (p Plan) parameters(line func(string, ...any)) {
	if !slices.ContainsFunc(p.Guesses, func(g Guess) bool { return g.Searched }) {
		line("# FILL IN: nothing is searched yet. Give the script a flag (argparse) and pass it in the command, \"--lr={{lr}}\", or let it")
		line("# read the environment, float(os.environ.get(\"TRIAL_PARAM_LR\", \"0.001\")). Then write the parameter, such as:")
		line("#   - {name: lr, type: float, min: 0.0001, max: 0.1, log: true}")
	}

	if slices.ContainsFunc(p.Guesses, func(g Guess) bool { return g.Parameter != "" }) {
		line("parameters:")
	}

	for _, g := range p.Guesses {
		lead := "guess: "
		if g.Left() {
			lead = ""
		} else if g.Fill {
			lead = "FILL IN; guess: "
		}

		help := ""
		if g.Help != "" {
			help = "; the script says: " + comment(g.Help)
		}

		line("  # %s: %s%s%s", g.Name, lead, comment(g.Why), help)

		if g.Parameter != "" {
			line("  - {name: %s, %s}", g.Name, g.Parameter)
		}
	}
}

// maxComment bounds a quote of a script in a comment.
const maxComment = 160

// comment is a text that a comment can hold: one line of printable characters.
func comment(text string) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	if runes := []rune(text); len(runes) > maxComment {
		return string(runes[:maxComment]) + "…"
	}

	return text
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}

		return ' '
	}, text)
}
