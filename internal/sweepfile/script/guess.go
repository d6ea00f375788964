package script

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// Treatments of a flag.
const (
	Searched = "searched"                // the search chooses the value
	Fixed    = "fixed"                   // at a value that the sweep file names
	Left     = "at the script's default" // the command does not name it
	Fill     = "FILL IN"                 // the script needs a value that only its author knows
	Command  = "subcommand"
)

// Guess is a sweep file's treatment of one flag.
type Guess struct {
	Name      string // of the parameter
	Treatment string
	Parameter string   // its fields in YAML, but the name; empty = it has none
	Elements  []string // of the command
	Variable  string   // of the environment that carries it; empty = none
	Why       string
}

const (
	fixed       = "type: fixed, value: "
	logScale    = ", log: true"
	placeholder = berth.Placeholder
	longestName = 40   // of 64 that a parameter may have, with room to tell it from others
	longestText = 1000 // of a script's that a sweep file repeats
)

// noName matches what no parameter's name can have.
var noName = regexp.MustCompile(`^$|^\d|[^A-Za-z0-9_]+`)

// The names of flags that have a rule: lower case, with _ for -. Every other flag
// stays at the script's default.
var (
	learningRate = regexp.MustCompile(`^(lr|lr0|learning_?rate|(base|init|initial|max)_(lr|learning_rate))$`)
	batchSize    = regexp.MustCompile(`^((train|training|mini|per_device_train)_)?(batch|batch_?size|bs)$|^minibatch(_size)?$`)
	dropOut      = regexp.MustCompile(`^(drop|drop_?out|drop_?(out_)?(rate|prob))$`)
	weightDecay  = regexp.MustCompile(`^(weight_decay|wd|l2|l2_reg|l2_regularization)$`)
	lengthOrSeed = regexp.MustCompile(`^((n|num|max|num_train)_)?(epochs?|steps|iters|iterations)$|(^|_)(seed|random_state)$`)
	output       = regexp.MustCompile(`^(out|output|save)(_(path|file|to))?$|(^|_)(out|outputs?|save|logs?|results?|work|run|export|tb|tensorboard|checkpoints?|ckpts?|model)_?(dir|folder|root)$`)
)

// GuessFlags guesses what to do with each flag, in their order.
func GuessFlags(flags []Flag) []Guess {
	taken := map[string]bool{}
	out := make([]Guess, 0, len(flags))

	for _, f := range flags {
		if text := strings.Join(f.Names, " "); printable(text) != text || strings.Contains(text, "{{") {
			continue // no command can hold it
		}

		name := noName.ReplaceAllString(f.Dest, "_")
		for name = name[:min(len(name), longestName)]; taken[strings.ToUpper(name)]; {
			name += "_"
		}

		taken[strings.ToUpper(name)] = true
		out = append(out, f.guess(name))
	}

	return out
}

func (f Flag) guess(name string) Guess {
	if f.Form == FormCommand {
		return Guess{Name: name, Treatment: Command, Elements: f.Names, Why: "the one that trains; others: " + strings.Join(f.Choices, ", ")}
	}

	g := Guess{Name: name, Treatment: Fixed}
	g.Parameter, g.Why = f.parameter()

	switch {
	case strings.HasPrefix(g.Parameter, fixed):
	case g.Parameter != "":
		g.Treatment = Searched
	case f.Required && f.Default != nil && holds(f.Default.String()):
		g.Parameter, g.Why = fixed+yaml(*f.Default), "the script's default, as the script requires it"
	case f.Required:
		g.Treatment, g.Parameter, g.Why = Fill, fixed+placeholder, "the script requires it: write its value; default: "+f.defaultText()
	default:
		g.Treatment, g.Why = Left, f.defaultText()
	}

	if g.Treatment != Left && f.Variable != "" {
		g.Variable = f.Variable
	} else if g.Treatment != Left {
		g.Elements = f.elements("{{" + name + "}}")
	}

	if f.Help != "" {
		g.Why += "; the script says: " + f.Help
	}

	return g
}

// parameter applies the rules; empty = none fits the flag's name and type.
func (f Flag) parameter() (parameter, why string) {
	name := strings.ToLower(strings.ReplaceAll(f.Dest, "-", "_"))
	at, numeric := f.number()

	switch {
	case f.Form != FormValue || len(f.Choices) > 0:
	case learningRate.MatchString(name):
		// Gradient descent with momentum diverges sooner above its author's choice than
		// it becomes too slow below it: internal/e2e/testdata/newcomer/waves does at 15
		// times its default, and not at 10, with batches of 32 to 128 (JAX, 2026-11-27).
		const usual, below, above = 0.001, 30, 10

		if at == 0 {
			at = usual
		}

		return f.floatRange(round(at/below), min(round(at*above), max(1, at)), logScale), "a 30th to 10 times the default, on a log scale"
	case dropOut.MatchString(name) && numeric:
		return f.floatRange(0, max(0.5, at), ""), "up to half"
	case weightDecay.MatchString(name):
		return f.floatRange(1e-6, max(1e-2, at), logScale), "on a log scale"
	case batchSize.MatchString(name) && f.Type == TypeInt:
		return batchChoices(int64(at)), "half to twice the default; it changes the memory, so each is measured"
	case lengthOrSeed.MatchString(name) && numeric:
		return fixed + yaml(*f.Default), "the same for all trials, so that they compare"
	case output.MatchString(name) && (f.Required || isText(f.Default)) && f.Type != TypeInt && f.Type != TypeFloat: // without a default the script may write nothing
		target := "/trial/out"
		if base := path.Base(f.defaultText()); isText(f.Default) && strings.LastIndexByte(base, '.') > 0 && holds(base) {
			target += "/" + base // a file
		}

		return fixed + yaml(berth.StringValue(target)), "files of a trial are kept from /trial/out"
	}

	return "", ""
}

// holds reports whether a sweep file can hold a text as a flag's value.
func holds(text string) bool {
	return len(text) <= longestText && printable(text) == text && !strings.HasPrefix(text, "-")
}

// elements pass a value to the script. A short flag is a separate argument:
// click takes the = of "-b=1" for a part of the value.
func (f Flag) elements(value string) []string {
	for _, name := range f.Names {
		if strings.HasPrefix(name, "--") {
			return []string{name + "=" + value}
		}
	}

	return append(append([]string{}, f.Names[:min(1, len(f.Names))]...), value)
}

// defaultText is the default as a comment shows it.
func (f Flag) defaultText() string {
	text := "none"
	if f.Default != nil {
		text = f.Default.String()
	}

	if len(f.Choices) > 0 {
		text += " (one of " + strings.Join(f.Choices, ", ") + ")"
	} else if f.Type == TypeNone && f.Form == FormValue && f.Default != nil && !isText(f.Default) {
		text += "; the script would take a text: give it a type, such as type=float, to search it"
	}

	return text
}

// number is the default of a flag that takes numbers; at is 0 when it is not positive,
// or too large to compute with.
func (f Flag) number() (at float64, numeric bool) {
	if f.Default == nil || f.Type != TypeInt && f.Type != TypeFloat {
		return 0, false
	}

	at, numeric = f.Default.Number()
	if numeric = numeric && holds(f.Default.String()); !numeric || at > math.MaxInt32 || at < 1e-12 {
		at = 0
	}

	return at, numeric
}

// batchChoices are half, once and twice the default.
func batchChoices(at int64) string {
	usual := fmt.Sprintf(", default: %d", at)

	switch {
	case at < 1:
		at, usual = 32, ""
	case at == 1:
		return "type: categorical, values: [1, 2], default: 1, memory: true"
	}

	return fmt.Sprintf("type: categorical, values: [%d, %d, %d]%s, memory: true", at/2, at, at*2, usual)
}

// floatRange is a search range; empty when the flag takes no floats.
func (f Flag) floatRange(low, high float64, log string) string {
	if f.Type != TypeFloat {
		return ""
	}

	usual := ""
	if at, numeric := f.number(); numeric && at >= low && at <= high {
		usual = ", default: " + decimal(at)
	}

	return "type: float, min: " + decimal(low) + ", max: " + decimal(high) + log + usual
}

// round keeps one significant digit: a guess is not exact.
func round(v float64) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 0, 64), 64) // its own format

	return out
}

// decimal writes a number without an exponent, as people read it.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// yaml writes a value as YAML does, whose quoted texts have Go's escapes and more.
func yaml(v berth.Value) string {
	if text, ok := v.Any().(string); ok {
		return strconv.Quote(text)
	}

	return v.String()
}

func isText(v *berth.Value) bool { return v != nil && strings.HasPrefix(yaml(*v), `"`) }
