package script

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// Guess is a sweep file's treatment of one flag.
type Guess struct {
	Name      string   // of the parameter
	Parameter string   // its fields in YAML, but the name; empty = it has none
	Elements  []string // of the command; empty = the command does not name the flag
	Why       string
	Help      string // the script's own words

	Searched bool // the search chooses the value
	Fill     bool // the script needs a value that only its author knows

	behind bool // the subcommand, in the command
}

// Left reports whether the flag stays at the script's default.
func (g Guess) Left() bool { return len(g.Elements) == 0 }

// GuessFlags guesses what to do with each flag, in their order.
func GuessFlags(flags []Flag) []Guess {
	taken := map[string]bool{}
	out := make([]Guess, 0, len(flags))

	for _, f := range flags {
		if text := strings.Join(f.Names, " "); printable(text) != text || strings.Contains(text, "{{") {
			continue // no command can hold it
		}

		out = append(out, f.guess(parameterName(f.Dest, taken)))
	}

	return out
}

func (f Flag) guess(name string) Guess {
	g := Guess{Name: name, Help: f.Help, behind: f.Command != ""}

	if f.Form == FormValue && len(f.Choices) == 0 {
		key := strings.ToLower(strings.ReplaceAll(f.Dest, "-", "_"))

		for _, r := range rules {
			if !r.name.MatchString(key) {
				continue
			}

			if g.Parameter, g.Why = r.guess(f); g.Parameter != "" {
				g.Searched = !strings.HasPrefix(g.Parameter, "type: fixed")
				g.Elements = f.elements("{{" + name + "}}")

				return g
			}
		}
	}

	if f.Required {
		return f.require(g)
	}

	g.Why = "fixed at the script's default, " + f.defaultText()

	if _, isText := f.defaultValue().(string); f.Type == TypeNone && f.Form == FormValue && f.Default != nil && !isText {
		g.Why += "; the script would take a text: give it a type, such as type=float, to search it"
	}

	return g
}

// require passes a flag that the script requires.
func (f Flag) require(g Guess) Guess {
	switch {
	case f.Form == FormSwitch:
		g.Elements, g.Why = f.Names[:min(1, len(f.Names))], "the script requires it"
	case f.Form == FormList:
		g.Elements, g.Why, g.Fill = f.elements(placeholder), "it takes several values: write them into the command", true
	case f.Default != nil && f.holds(f.Default.String()):
		g.Parameter, g.Why = fixed(*f.Default, "the script's default, as the script requires it")
	case len(f.Choices) > 0 && f.holds(f.Choices[0]):
		g.Parameter, g.Why = fixed(berth.StringValue(f.Choices[0]), "the first of its choices, as the script requires it")
	default:
		g.Parameter, g.Why = fixed(berth.StringValue(placeholder), "the script requires it, and has no default: write its value")
		g.Fill = true
	}

	if g.Parameter != "" {
		g.Elements = f.elements("{{" + g.Name + "}}")
	}

	return g
}

// placeholder stands for a value that only the author knows.
const placeholder = "REPLACE-ME"

// maxText is the longest text of a script's that a sweep file repeats.
const maxText = 1000

// holds reports whether a sweep file can hold a text as the flag's value.
func (f Flag) holds(text string) bool {
	return len(text) <= maxText && printable(text) == text && !strings.HasPrefix(text, "-")
}

// elements pass a value to the script. A short flag is a separate argument:
// click takes the = of "-b=1" for a part of the value.
func (f Flag) elements(value string) []string {
	for _, name := range f.Names {
		if strings.HasPrefix(name, "--") && f.Form != FormList {
			return []string{name + "=" + value}
		}
	}

	return append(append([]string{}, f.Names[:min(1, len(f.Names))]...), value)
}

func (f Flag) defaultValue() any {
	if f.Default == nil {
		return nil
	}

	return f.Default.Any()
}

// defaultText is the default as a comment shows it.
func (f Flag) defaultText() string {
	text := "none"
	if f.Default != nil {
		text = yaml(*f.Default)
	}

	if len(f.Choices) > 0 {
		text += " (one of " + strings.Join(f.Choices, ", ") + ")"
	}

	return text
}

// rules guess by the name of a flag: lower case, with _ for -. No parameter
// means that the flag's type does not fit.
var rules = []struct {
	name  *regexp.Regexp
	guess func(f Flag) (parameter, why string)
}{
	{regexp.MustCompile(`^(lr|lr0|learning_?rate|(base|init|initial|max)_(lr|learning_rate))$`), Flag.learningRate},
	{regexp.MustCompile(`^((train|training|mini|per_device_train)_)?(batch|batch_?size|bs)$|^minibatch(_size)?$`), Flag.batch},
	{regexp.MustCompile(`^(drop|drop_?out|drop_?(out_)?(rate|prob))$`), Flag.dropOut},
	{regexp.MustCompile(`^(weight_decay|wd|l2|l2_reg|l2_regularization)$`), Flag.weightDecay},
	{regexp.MustCompile(`^((n|num|max|num_train)_)?(epochs?|steps|iters|iterations)$`), Flag.length},
	{regexp.MustCompile(`(^|_)(seed|random_state)$`), Flag.seed},
	{regexp.MustCompile(`^(out|output|save)(_(path|file|to))?$|(^|_)(out|outputs?|save|logs?|results?|work|run|export|tb|tensorboard|checkpoints?|ckpts?|model)_?(dir|folder|root)$`), Flag.output},
}

func (f Flag) learningRate() (parameter, why string) {
	// Gradient descent with momentum diverges sooner above its author's choice than
	// it becomes too slow below it: internal/e2e/testdata/newcomer/waves does at 15
	// times its default, and not at 10, with batches of 32 to 128 (JAX, 2026-11-27).
	const usual, below, above = 0.001, 30, 10

	at := f.positive(usual)

	return f.float(round(at/below), min(round(at*above), max(1, at)), true), "a 30th to 10 times the default, on a log scale"
}

func (f Flag) dropOut() (parameter, why string) {
	const most = 0.5

	if f.Default == nil && !f.Required {
		return "", ""
	}

	return f.float(0, max(most, f.positive(0)), false), "up to half"
}

func (f Flag) weightDecay() (parameter, why string) {
	const low, high = 1e-6, 1e-2

	return f.float(low, max(high, f.positive(0)), true), "on a log scale"
}

func (f Flag) batch() (parameter, why string) {
	if f.Type != TypeInt {
		return "", ""
	}

	const usual = 32

	at := int64(f.positive(usual))

	var values []string

	for _, v := range []int64{at / 2, at, at * 2} {
		if v >= 1 && (f.Min == nil || float64(v) >= *f.Min) && (f.Max == nil || float64(v) <= *f.Max) {
			values = append(values, strconv.FormatInt(v, 10))
		}
	}

	if len(values) == 0 {
		return "", ""
	}

	parameter = "type: categorical, values: [" + strings.Join(values, ", ") + "]"
	if text := f.defaultText(); strings.Contains(" "+strings.Join(values, " ")+" ", " "+text+" ") {
		parameter += ", default: " + text
	}

	return parameter + ", memory: true", "half to twice the default; it changes the memory, so each is measured"
}

func (f Flag) length() (parameter, why string) {
	const few = 5 // epochs, for a first try

	v, number := f.number()
	if f.Type == TypeInt && f.Required && f.Default == nil {
		return fixed(berth.IntValue(few), "a few, for a first try")
	} else if !number {
		return "", ""
	}

	return fixed(v, "the same for all trials, so that they compare; fewer make the search faster")
}

func (f Flag) seed() (parameter, why string) {
	v, number := f.number()
	if !number {
		return "", ""
	}

	return fixed(v, "so that trials differ by what is searched; TRIAL_SEED has one for each trial")
}

// output maps an output flag to the directory that Berth keeps.
func (f Flag) output() (parameter, why string) {
	text, isText := f.defaultValue().(string)
	if f.Type == TypeInt || f.Type == TypeFloat || !isText && !f.Required {
		return "", "" // without a default the script may write nothing
	}

	target := "/trial/out"
	if base := text[strings.LastIndexByte(text, '/')+1:]; strings.LastIndexByte(base, '.') > 0 && f.holds(base) {
		target += "/" + base // a file
	}

	return fixed(berth.StringValue(target), "files of a trial are kept from /trial/out")
}

// number is the default of a flag that takes numbers.
func (f Flag) number() (v berth.Value, ok bool) {
	if f.Default == nil || f.Type != TypeInt && f.Type != TypeFloat {
		return v, false
	}

	_, ok = f.Default.Number()

	return *f.Default, ok && f.holds(f.Default.String())
}

// positive is the default of a flag, or other.
func (f Flag) positive(other float64) float64 {
	if f.Default != nil {
		if v, ok := f.Default.Number(); ok && v > 0 && v < math.MaxInt32 {
			return v
		}
	}

	return other
}

// fixed keeps one value.
func fixed(v berth.Value, why string) (parameter, because string) {
	return "type: fixed, value: " + yaml(v), why
}

// float is a range within the flag's own bounds; empty for none.
func (f Flag) float(low, high float64, log bool) string {
	if f.Min != nil {
		low = max(low, *f.Min)
	}

	if f.Max != nil {
		high = min(high, *f.Max)
	}

	if f.Type != TypeFloat || low >= high || log && low <= 0 {
		return ""
	}

	parameter := "type: float, min: " + decimal(low) + ", max: " + decimal(high)
	if log {
		parameter += ", log: true"
	}

	if f.Default != nil {
		if at, ok := f.Default.Number(); ok && at >= low && at <= high {
			parameter += ", default: " + decimal(at)
		}
	}

	return parameter
}

// round keeps one significant digit: a guess is not exact.
func round(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 0, 64), 64)
	if err != nil {
		return v
	}

	return out
}

// decimal writes a number without an exponent, where people can read that.
func decimal(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-9 || size > 1e9) {
		return berth.FloatValue(v).String()
	}

	return strconv.FormatFloat(v, 'f', -1, 64)
}

// yaml writes a value as YAML does in a flow.
func yaml(v berth.Value) string {
	text, isText := v.Any().(string)
	if !isText {
		return v.String()
	}

	if plainText.MatchString(text) && !reservedText.MatchString(text) {
		return text
	}

	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}

	return string(quoted)
}

var (
	plainText    = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)
	reservedText = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n|\.nan|\.inf)$`)
	noName       = regexp.MustCompile(`[^A-Za-z0-9_]+`)
)

// parameterName is a name that a sweep file takes, and that no other flag has.
func parameterName(dest string, taken map[string]bool) string {
	const longest = 50 // of 64, with room for a number

	name := noName.ReplaceAllString(strings.TrimLeft(dest, "-"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "p_" + name
	}

	name = name[:min(len(name), longest)]
	unique := name

	for i := 2; taken[strings.ToUpper(unique)]; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}

	taken[strings.ToUpper(unique)] = true

	return unique
}
