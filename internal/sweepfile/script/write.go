package script

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Plan is the input of a sweep file.
type Plan struct {
	Script    string // as the user named it
	Name      string // of the sweep
	Image     string
	Build     string // the command that builds the image
	File      string // the script's file name
	Guesses   []Guess
	Objective Objective
	Trials    int // of the search
}

// SweepFile writes the plan as a commented sweep file.
func (p Plan) SweepFile() string {
	var (
		command, parameters, variables strings.Builder
		todo                           string
	)

	for _, g := range p.Guesses {
		for _, element := range g.Elements {
			fmt.Fprintf(&command, "  - %q\n", element)
		}

		if g.Variable != "" {
			fmt.Fprintf(&variables, "  %s: %q\n", g.Variable, "{{"+g.Name+"}}")
		}

		fmt.Fprintf(&parameters, "  # %s: guess: %s: %s\n", g.Name, g.Treatment, comment(g.Why))

		if g.Parameter != "" {
			fmt.Fprintf(&parameters, "  - {name: %s, %s}\n", g.Name, g.Parameter)
		}
	}

	environment := ""
	if variables.Len() > 0 {
		environment = "environment_variables:\n" + variables.String()
	}

	head := "parameters:\n"
	if !strings.Contains(parameters.String(), "\n  - {") {
		head = ""
	}

	if !slices.ContainsFunc(p.Guesses, func(g Guess) bool { return g.Treatment == Searched }) {
		todo = `# FILL IN: nothing is searched yet. Give the script a flag (argparse) and pass it in the command, "--lr={{lr}}", or let it
# read a variable, float(os.environ.get("LR", "0.001")), and set it. Then write the parameter, such as:
# environment_variables: {LR: "{{lr}}"}
# parameters:
#   - {name: lr, type: float, min: 0.0001, max: 0.1, log: true}
`
	}

	return fmt.Sprintf(`# Written by %s. Read every line with "guess:", and change what is wrong.
# What is wrong with a change of it, if anything: berth sweep validate -f FILE.
version: 1
name: %q
image: %s   # built by: %s
command:
  - python3
  - %q
%sworkdir: /app
%s%s%s%ssearch: {algorithm: auto, seed: 1}
objective: {metric: %s, goal: %s}   # guess: %s
limits: {max_trials: %d, max_failed_trials: 3, max_trial_duration: 1h}   # guess: enough for a first look
# Metrics are what the script prints, such as val_loss=0.4 or {"val_loss": 0.4}; Keras reports its epochs by itself.
`, comment(ShellCommand("berth", "init", p.Script)), p.Name, p.Image, comment(p.Build), "/app/"+p.File, command.String(),
		todo, environment, head, parameters.String(), p.Objective.Metric, p.Objective.Goal, p.Objective.Why, p.Trials)
}

// Recipe is the input of a Dockerfile.
type Recipe struct {
	From         string   // the base image
	Image        string   // the name of the built image
	Files        []string // the script, and the modules and packages beside it that it needs
	Requirements bool     // requirements.txt exists
	Missing      []string // modules that the base image lacks
	User         string   // of the base image; empty = root
}

// Dockerfile writes the recipe.
func (r Recipe) Dockerfile() string {
	var (
		steps          strings.Builder
		known, unknown []string
	)

	for _, module := range r.Missing {
		if name := packages[module]; name == "" {
			unknown = append(unknown, module)
		} else if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}

	switch {
	case r.Requirements:
		known = []string{"-r requirements.txt"}
		steps.WriteString("COPY requirements.txt /app/\n")
	case len(unknown) > 0:
		fmt.Fprintf(&steps, "# not known: the packages of %s. Write them into requirements.txt, delete this file, and type `berth init` again.\n", comment(strings.Join(unknown, ", ")))
	}

	if len(known) > 0 {
		fmt.Fprintf(&steps, "# On machines with GPUs, TensorFlow is \"tensorflow[and-cuda]\".\nRUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir %s\n", strings.Join(known, " "))
	}

	for _, file := range r.Files {
		target := "/app/"
		if path.Ext(file) != ".py" {
			target += file + "/"
		}

		fmt.Fprintf(&steps, "COPY [%q, %q]\n", file, target) // as JSON, which takes spaces
	}

	return fmt.Sprintf(`# Written by berth init. Build it, and again after every change of the script:
#   docker build -t %s .
FROM %s
USER root
WORKDIR /app
%s# Data that the script reads must be in the image, too, such as: COPY data/ /app/data/
# Trials have no rights: everybody must be able to read the files.
RUN chmod -R a+rX /app
USER %s
`, r.Image, r.From, &steps, cmp.Or(r.User, "65532:65532"))
}

// comment is a text that a comment can hold: one line of printable characters.
func comment(text string) string {
	const longest = 240 // characters: a script may say much

	text = strings.Join(strings.Fields(printable(text)), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
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

// plain words mean themselves to a shell.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// ShellCommand is a command as a person types it: words that a shell would take apart are quoted.
func ShellCommand(words ...string) string {
	quoted := make([]string, len(words))

	for i, word := range words {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}

		quoted[i] = word
	}

	return strings.Join(quoted, " ")
}
