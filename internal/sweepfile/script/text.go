package script

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// AsksForFlags reports whether a text imports a library that reads a command line by way
// of argparse, click or absl, which the driver hooks. A script without one is not run: it
// would train.
var AsksForFlags = regexp.MustCompile(`(?m)^[ \t]*(import|from)\b.*\b(argparse|HfArgumentParser|simple_parsing|tyro|jsonargparse|click|typer|absl)\b`).MatchString

var (
	// variable matches a read of an environment variable that has a literal as its default.
	variable = regexp.MustCompile(`(?:\b(int|float)\s*\(\s*)?\bos\.(?:environ\.get|getenv)\(\s*["']([A-Za-z_]\w*)["']\s*,\s*(?:"([^"\n]*)"|'([^'\n]*)'|([-+\w.]+))\s*\)`)
	// dictionary matches one of literals at the top of a script, and setting a number in it.
	dictionary = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)\s*=\s*\{([^{}]*)\}`)
	setting    = regexp.MustCompile(`["'](\w+)["']\s*:\s*([-+]?\d[\d_]*(\.?\d*(?:[eE][-+]?\d+)?))\s*(?:[,#\n]|$)`)

	// byHand are the ways to take values that init does not read, and what to write for each.
	byHand = []struct {
		uses   *regexp.Regexp
		advice string
	}{
		{regexp.MustCompile(`(?m)^[ \t]*(import|from)\s+fire\b`), `fire says no flags before it runs the function: write into the command what you type, such as fit and "--lr={{lr}}", and each parameter`},
		{regexp.MustCompile(`(?m)^[ \t]*(import|from)\s+(hydra|omegaconf)\b`), `hydra takes name=value: write "lr={{lr}}" into the command for each parameter`},
		{regexp.MustCompile(`\bsys\.argv\[`), `the script takes its arguments by position: write "{{lr}}" into the command for each parameter, in that order`},
	}
)

// Variables are the environment variables that a script reads with a default, as
// flags that an environment carries.
func Variables(text string) []Flag {
	var flags []Flag

	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		kind, name, value := match[1], match[2], match[3]+match[4]+match[5]
		if strings.HasPrefix(name, "TRIAL_") || slices.ContainsFunc(flags, func(f Flag) bool { return f.Variable == name }) {
			continue
		}

		f := Flag{Variable: name, Dest: strings.ToLower(name), Type: kind, Form: FormValue, Default: new(berth.StringValue(value))}

		if number, err := strconv.ParseFloat(value, 64); err == nil && (kind != "" || match[5] != "") {
			f.Type, f.Default = cmp.Or(kind, TypeFloat), new(berth.FloatValue(number))

			if whole, err := strconv.ParseInt(value, 10, 64); err == nil && kind != TypeFloat {
				f.Type, f.Default = TypeInt, new(berth.IntValue(whole))
			}
		}

		flags = append(flags, f)
	}

	return flags
}

// ByHand says what to write by hand for a script without flags; empty = nothing is known.
func ByHand(text string) string {
	for _, one := range dictionary.FindAllStringSubmatch(text, -1) {
		var lines strings.Builder

		for _, entry := range setting.FindAllStringSubmatch(one[2], -1) {
			kind := TypeInt
			if entry[3] != "" {
				kind = TypeFloat
			}

			fmt.Fprintf(&lines, "\n  %q: %s(os.environ.get(%q, %q)),", entry[1], kind, strings.ToUpper(entry[1]), entry[2])
		}

		if lines.Len() > 0 {
			return one[1] + " holds the values. Let it read the environment (import os), and type the same again with --force:" + lines.String()
		}
	}

	for _, one := range byHand {
		if one.uses.MatchString(text) {
			return one.advice
		}
	}

	return ""
}

// higher and lower are the words for results, by the better direction.
const (
	higher = `accuracy|acc|auc|f1|f1_score|r2|iou|miou|bleu|precision|recall`
	lower  = `loss|rmse|mse|mae|error|perplexity`
)

var (
	// printed matches a metric where a program prints it: `val_loss=%.3f`,
	// `val loss: {x}`, `{"val_loss": x}`, `"val_loss:", x`.
	printed = regexp.MustCompile(`(?i)\b((?:val|valid|validation|test|eval)[ -])?((?:[a-z]\w*_)?(?:` + higher + `|` + lower + `))(?:\s*[=:]\s*[%{]|[:= ]*["']\s*[:,])`)
	better  = regexp.MustCompile(`(^|_)(` + higher + `)$`)
	held    = regexp.MustCompile(`(^|_)(val|valid|validation)(_|$)`) // a validation
	tested  = regexp.MustCompile(`(^|_)(test|eval)(_|$)`)
	trained = regexp.MustCompile(`(^|_)(train|training)(_|$)`)

	kerasValidates = regexp.MustCompile(`(?s)\bkeras\b.*\.fit\(.*validation_(data|split)\s*=`)
	kerasMetric    = regexp.MustCompile(`metrics\s*=\s*\[\s*["'](\w+)["']`)
)

// Objective is a metric that a search could follow.
type Objective struct {
	Metric string // a placeholder where the text prints none
	Goal   berth.Goal
	Why    string // of the guess
}

// GuessObjective looks for the metric that the text of a script prints: of a
// validation, else of a test, else any, and its better direction. A Keras script
// that validates reports val_… through Berth's shim without printing it.
func GuessObjective(text string) Objective {
	if kerasValidates.MatchString(text) {
		if match := kerasMetric.FindStringSubmatch(text); match != nil && better.MatchString(match[1]) {
			return Objective{"val_" + match[1], berth.GoalMaximize, "Keras reports it: the script validates, and its metrics name " + match[1]}
		}

		return Objective{"val_loss", berth.GoalMinimize, "Keras reports it, as the script validates"}
	}

	best, at := Objective{placeholder, berth.GoalMinimize, "FILL IN the name of a result that the script prints, such as val_loss=0.4, and its goal: minimize or maximize"}, -1

	for _, match := range printed.FindAllStringSubmatch(text, -1) {
		name := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(match[1] + match[2]))
		found, rank := Objective{name, berth.GoalMinimize, "the script prints " + name}, 0

		if better.MatchString(name) {
			found.Goal, rank = berth.GoalMaximize, 1
		}

		if held.MatchString(name) {
			rank += 4
		} else if tested.MatchString(name) {
			rank += 2
		}

		if rank > at && !trained.MatchString(name) {
			best, at = found, rank
		}
	}

	return best
}

// packages are the usual ones, by module. A package with another module's name
// may be another project's, so it is not installed. Keras comes with TensorFlow, which
// it computes with unless a variable says otherwise.
var packages = map[string]string{
	"cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image", "yaml": "pyyaml", "absl": "absl-py",
	"dateutil": "python-dateutil", "tensorflow_datasets": "tensorflow-datasets", "pytorch_lightning": "pytorch-lightning", "dotenv": "python-dotenv",
	"tensorflow": "tensorflow", "keras": "tensorflow", "torch": "torch", "torchvision": "torchvision", "jax": "jax", "flax": "flax", "optax": "optax",
	"transformers": "transformers", "numpy": "numpy", "pandas": "pandas", "scipy": "scipy", "matplotlib": "matplotlib", "tqdm": "tqdm",
	"xgboost": "xgboost", "lightgbm": "lightgbm", "click": "click", "typer": "typer",
}
