package failure

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// namesShown are the metrics that a message names at most.
const namesShown = 8

// noResult says what is missing from an attempt that ended well and never reported
// the objective, what was seen in its place, and what to write. A pipe or an except may
// hide that it failed.
func noResult(e Evidence) string {
	lines := e.words()
	if t := decisive(tracebacks(lines)); t != nil {
		return missing(e) + "; its log ends with " + t.words(lines)
	}

	return missing(e)
}

func missing(e Evidence) string {
	missing := fmt.Sprintf("ended well but never reported %q; ", e.Objective)
	printed := slices.Sorted(maps.Keys(e.Printed))

	switch p, found := e.Printed[e.Objective]; {
	case e.OwnPattern && len(e.Reported) == 0 && len(printed) == 0:
		return missing + "metrics.pattern found nothing in what it printed"
	case e.OwnPattern && len(e.Reported) == 0:
		return missing + "metrics.pattern found nothing in what it printed; without a pattern Berth finds " + nameList(printed) +
			" there: leave it out, or change it"
	case e.OwnPattern && found:
		return missing + "metrics.pattern found " + nameList(e.Reported) + fmt.Sprintf(" only; without a pattern Berth finds %q", e.Objective) +
			" in what it printed: leave it out, or change it"
	case found: // its metrics come from a file, or the line would have counted
		return missing + fmt.Sprintf("it printed %q on %s %d times: write `metrics: {source: stdout}` in the sweep file", e.Objective, p.Stream, p.Times)
	case len(e.Reported) > 0:
		return missing + "it reported " + nameList(e.Reported) + similar(e.Objective, e.Reported)
	case len(printed) > 0 && e.FromLog:
		return missing + "it printed " + nameList(printed) + " on standard error, where only a logger's lines and those with the objective count" + similar(e.Objective, printed)
	case len(printed) > 0:
		return missing + "it wrote nothing to its metrics file, and printed " + nameList(printed) +
			": with `metrics: {source: stdout}` these are its metrics" + similar(e.Objective, printed)
	case e.FromAny:
		return missing + "it reported no metric: print such as " + strconv.Quote(e.Objective+"=0.5") + ", or append lines such as " +
			fmt.Sprintf(`{"epoch": 1, %q: 0.5}`, e.Objective) + " to the file that TRIAL_METRICS_FILE names"
	case e.FromLog:
		return missing + "it printed nothing that reads as a metric: print such as " + strconv.Quote(e.Objective+"=0.5") +
			" or a line of JSON, or set metrics.pattern"
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

// similar asks for the name that a person most likely meant: the shortest that has
// the letters of the objective, or whose letters the objective has.
func similar(objective string, names []string) string {
	near := ""

	for _, name := range names {
		a, b := letters(objective), letters(name)
		if (strings.Contains(a, b) || strings.Contains(b, a)) && b != "" && (near == "" || len(name) < len(near)) {
			near = name
		}
	}

	if near == "" {
		return "; set objective.metric to one of these"
	}

	return fmt.Sprintf("; did you mean `objective: {metric: %s}`?", near)
}

var (
	between = strings.NewReplacer(" ", "", "_", "", "-", "", ".", "", "/", "", "|", "")
	splits  = strings.NewReplacer("training", "train", "validation", "val", "valid", "val", "evaluation", "eval")
	shorter = strings.NewReplacer("accuracy", "acc")
)

// splitBehind is a name with the word for the data that it is of behind it: Loss/val.
var splitBehind = regexp.MustCompile(`^(.+)[ _./|-]((?:train|val|valid|validation|training|dev|test|testing|eval|evaluation)\d*)$`)

// PlainName is a metric's name in lower case, without what is between its words, and with
// the short words for the data that it is of, in front: val_loss, Validation Loss and Loss/val
// are alike.
func PlainName(name string) string {
	return splits.Replace(between.Replace(splitBehind.ReplaceAllString(strings.ToLower(name), "$2$1")))
}

// letters is a name in the form in which two that mean the same are alike.
func letters(name string) string { return shorter.Replace(PlainName(name)) }
