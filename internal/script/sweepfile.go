package script

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/berthml/berth"
)

// Plan is all that a sweep file is made of.
type Plan struct {
	Script     string // as the user named it
	Name       string // of the sweep
	Image      string
	ImageNote  string   // what to know of the image; may be empty
	Python     string   // the program: python3 or python
	Path       string   // of the script in the image
	Workdir    string   // empty = the image's
	Subcommand []string // chosen of the script's; nil = it has none
	Others     []string // subcommands that were not chosen
	Guesses    []Guess
	Objective  Objective
	FromHelp   bool // flags were read from the text of --help
	Trials     int  // of the search; 0 = UsualTrials
}

// UsualTrials are enough for a first look.
const UsualTrials = 20

// Choose splits flags by subcommand: those of the script itself, those of the
// subcommand that trains, and the names of the others.
func Choose(flags []Flag) (own, of []Flag, chosen string, others []string) {
	var names []string

	for _, f := range flags {
		if f.Command != "" && !slices.Contains(names, f.Command) {
			names = append(names, f.Command)
		}
	}

	all := slices.Clone(names)
	names = slices.DeleteFunc(names, func(name string) bool { // it needs another word behind it
		return slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, name+" ") })
	})

	for _, want := range trains {
		at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(strings.Fields(name), want) })
		if at >= 0 && chosen == "" {
			chosen = names[at]
		}
	}

	if chosen == "" && len(names) > 0 {
		chosen = names[0]
	}

	for _, f := range flags {
		if f.Form == FormCommand {
			continue
		}

		switch f.Command {
		case "":
			own = append(own, f)
		case chosen:
			of = append(of, f)
		}
	}

	others = slices.DeleteFunc(names, func(name string) bool { return name == chosen })

	return own, of, chosen, others
}

// trains are the words for training, of subcommands and choices, best first.
var trains = []string{"train", "fit", "run", "main", "training"}

// SweepFile writes the plan as a commented sweep file.
func (p Plan) SweepFile() string {
	var b strings.Builder

	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("# Written by `berth init %s`. Read every line with \"guess:\", and change what is wrong.", comment(ShellCommand(p.Script)))
	line("# What is wrong with a change of it, if anything: `berth sweep validate -f FILE`.")
	line("version: 1")
	line("name: %s", p.Name)
	line("image: %s%s", p.Image, note(p.ImageNote))
	p.command(line)

	if p.Workdir != "" {
		line("workdir: %s", yaml(berth.StringValue(p.Workdir)))
	}

	p.parameters(line)
	line("search: {algorithm: random, seed: 1}")

	why := "guess: "
	if !p.Objective.Sure {
		why = "PLACEHOLDER, a guess: "
	}

	line("objective: {metric: %s, goal: %s}   # %s%s", yaml(berth.StringValue(p.Objective.Metric)), p.Objective.Goal, why, p.Objective.Why)
	line("limits: {max_trials: %d, max_failed_trials: 3, max_trial_duration: 1h}   # guess: enough for a first look", cmp.Or(p.Trials, UsualTrials))
	line("# Metrics are what the script prints, such as val_loss=0.4 or {\"val_loss\": 0.4}, or writes as TensorBoard event files; Keras reports its epochs by itself.")

	return b.String()
}

func (p Plan) command(line func(string, ...any)) {
	line("command:")
	line("  - %s", p.Python)
	line("  - %s", yaml(berth.StringValue(p.Path)))

	subcommand := func() {
		for _, word := range p.Subcommand {
			line("  - %s   # guess: the subcommand that trains%s", yaml(berth.StringValue(word)), otherCommands(p.Others))
		}
	}

	write := func(behind bool) {
		for _, last := range []bool{false, true} {
			for _, g := range p.Guesses {
				if g.last != last || g.behind != behind {
					continue
				}

				for _, element := range g.Elements {
					lead := "  - "
					if g.Left {
						lead = "  # - "
					}

					line("%s%s", lead, quote(element))
				}
			}
		}
	}

	write(false)
	subcommand()
	write(true)
}

func otherCommands(others []string) string {
	if len(others) == 0 {
		return ""
	}

	return "; others: " + comment(strings.Join(others, ", "))
}

func (p Plan) parameters(line func(string, ...any)) {
	if len(p.Guesses) == 0 {
		line("parameters:")
		line("  # PLACEHOLDER: the script has no flags that Berth found. A trial finds each value in the environment, too:")
		line("  #   lr = float(os.environ.get(\"TRIAL_PARAM_LR\", \"0.001\"))")
		line("  # Write that into the script, or give it a flag (argparse) and add \"--lr={{lr}}\" to the command.")
		line("  - {name: lr, type: float, min: 0.0001, max: 0.1, log: true}")

		return
	}

	active := slices.ContainsFunc(p.Guesses, func(g Guess) bool { return !g.Left && len(g.Parameters) > 0 })
	if active {
		line("parameters:")
	} else {
		line("# parameters:   # nothing is searched: take in what should be, and this line")
	}

	for _, g := range p.Guesses {
		lead := "guess"
		if g.Left {
			lead = "left out, a guess"
		}

		if g.Fill {
			lead = "FILL IN; guess"
		}

		help := ""
		if g.Help != "" {
			help = "; the script says: " + comment(g.Help)
		}

		line("  # %s: %s: %s%s", g.Name, lead, comment(g.Why), help)

		for _, text := range g.Parameters {
			if g.Left {
				line("  # - %s", text)
			} else {
				line("  - %s", text)
			}
		}
	}
}

func note(text string) string {
	if text == "" {
		return ""
	}

	return "   # " + comment(text)
}

// maxComment bounds what a comment quotes of a script.
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

// quote writes an element of a command.
func quote(text string) string {
	if plainText.MatchString(text) && !reservedText.MatchString(text) {
		return text
	}

	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(text)) + `"`
}
