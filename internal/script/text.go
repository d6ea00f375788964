package script

import (
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// asksForFlags matches what the driver can hook: libraries that read a command
// line by way of argparse, click or absl.
var asksForFlags = regexp.MustCompile(`\b(argparse|ArgumentParser|HfArgumentParser|simple_parsing|tyro|jsonargparse|click|typer|absl|app\.flags)\b`)

// printsHelp matches other ways to read a command line, whose --help can be read.
var printsHelp = regexp.MustCompile(`\b(fire|docopt|hydra|optparse|getopt)\b`)

// AsksForFlags reports whether a text mentions a library of flags that is hooked.
// A script without one is not run: it would train.
func AsksForFlags(text string) bool { return asksForFlags.MatchString(code(text)) }

// PrintsHelp reports whether a text mentions another library of flags.
func PrintsHelp(text string) bool { return printsHelp.MatchString(code(text)) }

// code is a text without the lines that are comments.
func code(text string) string {
	var b strings.Builder

	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}

	return b.String()
}

// metrics are the objectives to look for, best first.
var metrics = []struct {
	pattern *regexp.Regexp
	goal    berth.Goal
}{
	{word(`val_accuracy|val_acc`), berth.GoalMaximize},
	{word(`val_auc|val_f1|val_f1_score|val_iou|val_miou|val_map|val_bleu`), berth.GoalMaximize},
	{word(`val_loss|valid_loss|validation_loss`), berth.GoalMinimize},
	{word(`val_mae|val_mse|val_rmse|val_perplexity|val_error`), berth.GoalMinimize},
	{word(`eval_accuracy|valid_accuracy|validation_accuracy|valid_acc|test_accuracy|test_acc|eval_f1`), berth.GoalMaximize},
	{word(`eval_loss|test_loss`), berth.GoalMinimize},
	{word(`accuracy|auc|f1_score|f1|r2|iou|bleu`), berth.GoalMaximize},
	{word(`loss|rmse|mse|mae|perplexity|error_rate`), berth.GoalMinimize},
}

// word matches names as programs print them: "Val Loss" is val_loss.
func word(names string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(names, "_", "[ _-]") + `)\b`)
}

var separators = strings.NewReplacer(" ", "_", "-", "_")

var (
	validates      = regexp.MustCompile(`validation_(data|split)\s*=`)
	kerasAccuracy  = regexp.MustCompile(`metrics\s*=\s*\[[^\]]*["'](accuracy|acc)["']`)
	kerasFit       = regexp.MustCompile(`\.fit\(`)
	kerasMentioned = regexp.MustCompile(`\bkeras\b`)
)

// Objective is a metric that a search could follow.
type Objective struct {
	Metric string
	Goal   berth.Goal
	Why    string // of the guess
	Sure   bool   // false = the text mentions none; it is a placeholder
}

// GuessObjective looks for the metric that the text of a script reports. A Keras
// script that validates reports val_… by way of Berth's shim without a word of it.
func GuessObjective(text string) Objective {
	text = code(text)

	if kerasMentioned.MatchString(text) && kerasFit.MatchString(text) && validates.MatchString(text) {
		if match := kerasAccuracy.FindStringSubmatch(text); match != nil {
			return Objective{"val_" + match[1], berth.GoalMaximize, "Keras reports it: the script validates, and its metrics name " + match[1], true}
		}
	}

	for _, m := range metrics {
		if found := m.pattern.FindString(text); found != "" {
			return Objective{separators.Replace(strings.ToLower(found)), m.goal, "the script mentions " + found, true}
		}
	}

	return Objective{"val_loss", berth.GoalMinimize, "the script mentions no metric that is known here", false}
}

// imported matches one import of a Python file.
var imported = regexp.MustCompile(`(?m)^\s*(?:from\s+([A-Za-z_]\w*)[\w.]*\s+import|import\s+([A-Za-z_][\w., \t]*))`)

// distributions are packages whose name is not that of their module.
var distributions = map[string]string{
	"cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image",
	"yaml": "pyyaml", "absl": "absl-py", "bs4": "beautifulsoup4", "tensorflow_datasets": "tensorflow-datasets",
	"tensorflow_hub": "tensorflow-hub", "pytorch_lightning": "pytorch-lightning", "attr": "attrs", "dateutil": "python-dateutil",
	"google": "protobuf", "umap": "umap-learn", "hydra": "hydra-core", "Levenshtein": "levenshtein",
}

// Requirements guesses the packages of a Python text from its imports, sorted.
// own are modules beside the script.
func Requirements(text string, own []string) []string {
	found := map[string]bool{}

	for _, match := range imported.FindAllStringSubmatch(code(text), -1) {
		for name := range strings.SplitSeq(match[1]+match[2], ",") {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			name, _, _ = strings.Cut(name, ".")

			if name == "" || standard[name] || slices.Contains(own, name) {
				continue
			}

			if distribution, ok := distributions[name]; ok {
				name = distribution
			}

			found[name] = true
		}
	}

	switch {
	case found["tensorflow"]:
		delete(found, "keras") // comes with it, in the version that fits
	case found["keras"] && !found["torch"] && !found["jax"]:
		found["tensorflow"] = true // Keras computes nothing by itself
	}

	out := make([]string, 0, len(found))
	for name := range found {
		out = append(out, name)
	}

	slices.Sort(out)

	return out
}
