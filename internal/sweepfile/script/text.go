package script

import (
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// asksForFlags matches the import of a library that reads a command line by way
// of argparse, click or absl, which the driver hooks.
var asksForFlags = regexp.MustCompile(`(?m)^[ \t]*(import|from)\b.*\b(argparse|HfArgumentParser|simple_parsing|tyro|jsonargparse|click|typer|absl)\b`)

// AsksForFlags reports whether a text imports such a library. A script without
// one is not run: it would train.
func AsksForFlags(text string) bool { return asksForFlags.MatchString(text) }

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
	Metric string // empty = the text prints none
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

	const ranks = 6

	best, at := Objective{Goal: berth.GoalMinimize}, ranks

	for _, match := range printed.FindAllStringSubmatch(text, -1) {
		name := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(match[1] + match[2]))
		found := Objective{name, berth.GoalMinimize, "the script prints " + name}
		rank := 1

		if better.MatchString(name) {
			found.Goal, rank = berth.GoalMaximize, 0
		}

		switch {
		case trained.MatchString(name):
			continue
		case held.MatchString(name):
		case tested.MatchString(name):
			rank += 2
		default:
			rank += 4
		}

		if rank < at {
			best, at = found, rank
		}
	}

	return best
}

// packages are the usual ones, by module. A package with another module's name
// may be another project's, so it is not installed.
var packages = map[string]string{
	"cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image", "yaml": "pyyaml", "absl": "absl-py",
	"dateutil": "python-dateutil", "tensorflow_datasets": "tensorflow-datasets", "pytorch_lightning": "pytorch-lightning", "dotenv": "python-dotenv",
	"tensorflow": "tensorflow", "keras": "keras", "torch": "torch", "torchvision": "torchvision", "jax": "jax", "flax": "flax", "optax": "optax",
	"transformers": "transformers", "numpy": "numpy", "pandas": "pandas", "scipy": "scipy", "matplotlib": "matplotlib", "tqdm": "tqdm",
	"xgboost": "xgboost", "lightgbm": "lightgbm", "click": "click", "typer": "typer",
}

// Requirements are the packages of modules, and the modules whose package is not known.
func Requirements(modules []string) (known, unknown []string) {
	for _, module := range modules {
		if name, ok := packages[module]; ok {
			known = append(known, name)
		} else {
			unknown = append(unknown, module)
		}
	}

	if at := slices.Index(known, "keras"); at >= 0 {
		switch {
		case slices.Contains(known, "tensorflow"): // keras comes with it, in the version that fits
			known = slices.Delete(known, at, at+1)
		case !slices.Contains(known, "torch") && !slices.Contains(known, "jax"): // keras alone computes nothing
			known[at] = "tensorflow"
		}
	}

	return known, unknown
}
