package script

import (
	"maps"
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
func AsksForFlags(text string) bool { return asksForFlags.MatchString(statements(text)) }

// PrintsHelp reports whether a text mentions another library of flags.
func PrintsHelp(text string) bool { return printsHelp.MatchString(statements(text)) }

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

// validations are how many of metrics are of a validation by their name.
const validations = 4

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

	validated := kerasMentioned.MatchString(text) && kerasFit.MatchString(text) && validates.MatchString(text)
	if validated {
		if match := kerasAccuracy.FindStringSubmatch(text); match != nil {
			return Objective{"val_" + match[1], berth.GoalMaximize, "Keras reports it: the script validates, and its metrics name " + match[1], true}
		}
	}

	for i, m := range metrics {
		if validated && i >= validations { // what is left is of the training
			return kerasValidation(text)
		}

		if found := m.pattern.FindString(text); found != "" {
			return Objective{separators.Replace(strings.ToLower(found)), m.goal, "the script mentions " + found, true}
		}
	}

	return Objective{"val_loss", berth.GoalMinimize, "the script mentions no metric that is known here", false}
}

var (
	kerasMetrics = regexp.MustCompile(`metrics\s*=\s*\[([^\]]*)\]`)
	kerasMetric  = regexp.MustCompile(`["'](\w+)["']|(\w+)\(`)
	betterHigher = regexp.MustCompile(`(^|_)(acc|accuracy|auc|f1|f1_score|precision|recall|iou)$`)
	wordStart    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// kerasValidation is the metric that a Keras script reports of its validation:
// one of those that it names, else the loss.
func kerasValidation(text string) Objective {
	for _, list := range kerasMetrics.FindAllStringSubmatch(text, -1) {
		own := strings.Contains(list[1], "name=")

		for _, match := range kerasMetric.FindAllStringSubmatch(list[1], -1) {
			name := match[1]
			if name == "" && !own { // a class: Keras makes its name so
				name = strings.ToLower(wordStart.ReplaceAllString(match[2], "${1}_$2"))
			}

			if betterHigher.MatchString(name) {
				return Objective{"val_" + name, berth.GoalMaximize, "Keras reports it: the script validates, and its metrics name " + name, true}
			}
		}
	}

	return Objective{"val_loss", berth.GoalMinimize, "Keras reports it, as the script validates", true}
}

// imported matches one import of a Python file, at the start of a statement. Prose
// goes on behind the names.
var imported = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+([A-Za-z_]\w*)[\w.]*[ \t]+import\b|import[ \t]+([A-Za-z_][\w.]*(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[A-Za-z_][\w.]*(?:[ \t]+as[ \t]+\w+)?)*)[ \t]*(?:;.*)?\r?$)`)

// token matches what of Python's text is no statement: comments and texts.
var token = regexp.MustCompile(`(?s)#[^\n]*|"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)

// statements is a text without its comments and the texts in it.
func statements(text string) string { return token.ReplaceAllString(text, `""`) }

// parses matches each place that reads a command line.
var parses = regexp.MustCompile(`\b(parse_args|parse_known_args|parse_intermixed_args|parse_args_into_dataclasses)\s*\(|\bapp\.run\s*\(`)

// Parses counts the places of a text that read a command line: a script of two
// may read a part first.
func Parses(text string) int { return len(parses.FindAllString(statements(text), -1)) }

// Imports are the modules that a Python text imports, without Python's own, sorted.
func Imports(text string) []string {
	found := map[string]bool{}

	for _, match := range imported.FindAllStringSubmatch(statements(text), -1) {
		for name := range strings.SplitSeq(match[1]+match[2], ",") {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			name, _, _ = strings.Cut(name, ".")

			if !standard[name] {
				found[name] = true
			}
		}
	}

	return slices.Sorted(maps.Keys(found))
}

// known are packages with the name of their module. Another name may be that of
// somebody else's package: it is not installed.
var known = names(`
accelerate albumentations catboost click comet_ml dask datasets einops evaluate fastai fire flax gym gymnasium h5py httpx hyperopt
imageio imgaug jax jaxlib joblib jsonargparse keras kornia librosa lightgbm lightning loguru lxml
matplotlib mlflow monai networkx nibabel nltk numba numexpr numpy omegaconf onnx onnxruntime openpyxl optax optuna orjson
packaging pandas peft plotly polars psutil pyarrow pydantic pydicom pytest ray requests rich safetensors scipy seaborn
sentencepiece shap simple_parsing six soundfile spacy statsmodels stable_baselines3 sympy tabulate tensorboard tensorboardX
tensorflow tensorflow_probability tiktoken timm tokenizers toml torch torchaudio torchinfo torchmetrics
torchtext torchvision tqdm transformers trl typer typing_extensions tyro ujson wandb xarray xgboost zarr docopt 
`)

// distributions are packages whose name is not that of their module.
var distributions = map[string]string{
	"cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image",
	"yaml": "pyyaml", "absl": "absl-py", "bs4": "beautifulsoup4", "tensorflow_datasets": "tensorflow-datasets",
	"tensorflow_hub": "tensorflow-hub", "pytorch_lightning": "pytorch-lightning", "attr": "attrs", "dateutil": "python-dateutil",
	"umap": "umap-learn", "hydra": "hydra-core", "Levenshtein": "levenshtein", "dotenv": "python-dotenv", "fitz": "pymupdf",
	"imblearn": "imbalanced-learn", "skopt": "scikit-optimize", "tensorflow_addons": "tensorflow-addons", "OpenSSL": "pyopenssl",
	"pkg_resources": "", "google": "", "mpl_toolkits": "matplotlib", "keras_tuner": "keras-tuner", "IPython": "ipython",
}

// Requirements guesses the packages of a Python text from its imports, sorted:
// those that are known. own are modules beside the script.
func Requirements(text string, own []string) []string {
	found := map[string]bool{}

	for _, module := range Imports(text) {
		if name := Distribution(module); name != "" && !slices.Contains(own, module) {
			found[name] = true
		}
	}

	switch {
	case found["tensorflow"]:
		delete(found, "keras") // comes with it, in the version that fits
	case found["keras"] && !found["torch"] && !found["jax"]:
		found["tensorflow"] = true // Keras computes nothing by itself
	}

	return slices.Sorted(maps.Keys(found))
}

// Unknown are the modules of a Python text whose packages are not known here.
func Unknown(text string, own []string) []string {
	return slices.DeleteFunc(Imports(text), func(module string) bool {
		_, named := distributions[module]

		return named || known[module] || slices.Contains(own, module)
	})
}

// Distribution is the package that brings a module; empty = not known, or none.
func Distribution(module string) string {
	name, ok := distributions[module]
	if !ok && known[module] {
		name = module
	}

	return name
}
