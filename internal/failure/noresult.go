package failure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
)

// namesShown are the metrics that a message names at most.
const namesShown = 8

// noResult says what an attempt lacks that ended well and never reported the objective,
// which metrics Berth saw instead, and what to write. A pipe or an except may hide that
// it failed.
func noResult(e Evidence) string {
	lines := e.words()
	if t := decisive(tracebacks(lines)); t != nil {
		return missing(e) + "; its log ends with " + t.words(lines)
	}

	return missing(e)
}

func missing(e Evidence) string {
	missing := fmt.Sprintf("ended well but never reported %q; ", e.Objective)
	line := strconv.Quote(e.Objective + "=0.5")

	switch {
	case e.OwnPattern:
		return missing + "metrics.pattern found " + cmp.Or(nameList(e.Reported), "nothing") + " in what it printed: change the pattern, or leave it out"
	case e.Near.Line != "" && e.FromLog:
		missing += fmt.Sprintf("the line %q was not read: print such as %s", e.Near.Line, line)
		if e.Near.Pattern != "" {
			missing += fmt.Sprintf(", or set `metrics: {pattern: '%s'}`", strings.ReplaceAll(e.Near.Pattern, "'", "''"))
		}

		if len(e.Reported) > 0 {
			missing += "; it reported " + nameList(e.Reported) + similar(e.Objective, e.Reported)
		}

		return missing
	case len(e.Reported) > 0:
		return missing + "it reported " + nameList(e.Reported) + similar(e.Objective, e.Reported)
	case e.FromLog:
		return missing + "it printed nothing that reads as a metric: print such as " + line + " or a line of JSON, or set metrics.pattern"
	case e.FromEvents:
		return missing + "its TensorBoard event files, if it wrote any, hold no scalar: let it write them below /trial/out or its working directory, " +
			"or set metrics.source"
	default:
		return missing + "it reported no metric: append lines such as " + fmt.Sprintf(`{"epoch": 1, %q: 0.5}`, e.Objective) +
			" to the file that TRIAL_METRICS_FILE names, or print them with `metrics: {source: stdout}`"
	}
}

func nameList(names []string) string {
	quoted := make([]string, min(len(names), namesShown))
	for i := range quoted {
		quoted[i] = strconv.Quote(names[i])
	}

	text := strings.Join(quoted, ", ")
	if more := len(names) - namesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}

// similar asks for the name that a person most likely meant: the nearest of all.
func similar(objective string, names []string) string {
	near, least := "", 0

	for _, name := range names {
		if far, ok := nameDistance(objective, name); ok && (near == "" || far < least) {
			near, least = name, far
		}
	}

	if near == "" {
		return "; set its metric to one of these"
	}

	if strings.ContainsAny(near, `,:#{}[]"'`) {
		near = strconv.Quote(near)
	}

	return fmt.Sprintf("; did you mean `metric: %s`?", near)
}

// nameDistance is how far a name is from the objective's; ok is false for an unrelated name. A
// related one has the same letters but for one in five, or ends with the words of the objective
// and is of no training.
func nameDistance(objective, name string) (far int, ok bool) {
	a, b := PlainName(objective), PlainName(name)
	wrong, most := levenshtein.Distance(a, b, nil), max(len(a), len(b))/5
	a, b = shorter.Replace(a), shorter.Replace(b)

	if wrong = min(wrong, levenshtein.Distance(a, b, nil)); wrong <= most {
		return wrong, true
	}

	return len(a) + len(b), strings.HasSuffix(b, a) && !strings.HasPrefix(b, "train")
}

// betweenWords are the signs between the words of a name.
const betweenWords = " _-./|"

var (
	between = strings.NewReplacer(" ", "", "_", "", "-", "", ".", "", "/", "", "|", "")
	splits  = strings.NewReplacer("training", "train", "validation", "val", "valid", "val", "evaluation", "eval")
	shorter = strings.NewReplacer("accuracy", "acc")
	// data are the words of a name for the data that it is of.
	data = []string{"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval", "evaluation"}
)

// PlainName is a metric's name in lower case, without separators, with the short word for its
// data set in front: val_loss, Validation Loss and Loss/val are alike.
func PlainName(name string) string {
	name = strings.ToLower(name)
	if at := strings.LastIndexAny(name, betweenWords); at > 0 && slices.Contains(data, strings.TrimRight(name[at+1:], "0123456789")) {
		name = name[at+1:] + name[:at]
	}

	return splits.Replace(between.Replace(name))
}
