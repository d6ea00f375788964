package failure

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	if e.Near.Line != "" && e.FromLog && !e.OwnPattern {
		return missed(e)
	}

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

// missed quotes the line that has the objective and was not read, with what to do.
func missed(e Evidence) string {
	text := fmt.Sprintf("ended well but never reported %q; the line %q was not read: print such as %q", e.Objective, e.Near.Line, e.Objective+"=0.5")
	if e.Near.Pattern != "" {
		text += fmt.Sprintf(", or set `metrics: {pattern: '%s'}`", strings.ReplaceAll(e.Near.Pattern, "'", "''"))
	}

	if len(e.Reported) > 0 {
		text += "; it reported " + nameList(e.Reported) + similar(e.Objective, e.Reported)
	}

	return text
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
		return "; set objective.metric to one of these"
	}

	if strings.ContainsAny(near, `,:#{}[]"'`) {
		near = strconv.Quote(near)
	}

	return fmt.Sprintf("; did you mean `objective: {metric: %s}`?", near)
}

// betweenWords are the signs between the words of a name.
const betweenWords = " _-./|"

// dataOf are the words of a name for the data that it is of, by what they mean.
var dataOf = map[string]string{
	"train": "train", "training": "train", "test": "test", "testing": "test", "val": "val", "valid": "val", "validation": "val", "dev": "val",
	"eval": "val", "evaluation": "val",
}

// IsAim reports whether a word says of a metric that it is an aim, a bound, a change or a
// value of before: such a metric is never the objective.
func IsAim(word string) bool { return aims[strings.ToLower(word)] }

var aims = map[string]bool{
	"target": true, "goal": true, "until": true, "min": true, "max": true, "minimum": true, "maximum": true, "lowest": true, "highest": true,
	"delta": true, "δ": true, "prev": true, "previous": true, "initial": true, "was": true, "from": true,
}

// figureOf are words behind a metric's name that change nothing: F1 score. Others make a
// setting of it: loss scale.
var figureOf = map[string]bool{"score": true, "value": true, "mean": true, "avg": true}

// shortest names have other letters where one is wrong, but at their end: mse and rmse
// are two metrics, los and loss are one.
const shortest = 5

// nameDistance is how far a name is from the objective's; ok is false for an unrelated name. A
// related name is of the same data, or, for an objective without a data set, not of
// training. It has the same letters but for one in five or a last one that is an s or
// doubled, or more words in front.
func nameDistance(objective, name string) (far int, ok bool) {
	want, of := dataWords(objective)
	words, is := dataWords(name)

	switch {
	case of == is:
	case of != "" || is == "train":
		return 0, false
	case is == "val":
		far = 1
	default:
		far = 2
	}

	a, b := strings.Join(want, ""), strings.Join(words, "")
	if shorter.Replace(a) == shorter.Replace(b) {
		return far, true
	}

	wrong := levenshtein.Distance(a, b, nil)
	typo := len(a) >= shortest && wrong <= len(a)/shortest || wrong == 1 && (lacksLast(a, b) || lacksLast(b, a))

	if len(a) > 0 && len(b) > 0 && typo && digitsOf(a) == digitsOf(b) {
		return far + 10*wrong, true
	}

	const further = 1000

	if slices.ContainsFunc(words, IsAim) || !endsName(words, want) {
		return 0, false
	}

	for _, word := range want {
		if !slices.ContainsFunc(words, func(w string) bool { return shorter.Replace(w) == shorter.Replace(word) }) {
			return 0, false
		}
	}

	return far + further + 10*len(b), len(want) > 0
}

// lacksLast reports whether a name lacks only the last letter of another: an s, or a
// doubled letter. map and mape are two metrics.
func lacksLast(whole, name string) bool {
	last := len(whole) - 1

	return strings.HasPrefix(whole, name) && last > 0 && last == len(name) && (whole[last] == 's' || whole[last] == whole[last-1])
}

// endsName reports whether a name has only insignificant words behind the last of some words.
func endsName(words, some []string) bool {
	for _, word := range slices.Backward(words) {
		if slices.ContainsFunc(some, func(w string) bool { return shorter.Replace(w) == shorter.Replace(word) }) {
			return true
		}

		if figureOf[word] || !unicode.IsLetter(rune(word[0])) {
			continue
		}

		return false
	}

	return false
}

// dataWords are the words of a name in lower case, without those for the data that it is
// of, which it returns by their meaning; empty = it names none.
func dataWords(name string) (words []string, of string) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(betweenWords, r) }) {
		if data := dataOf[strings.TrimRight(word, "0123456789")]; data != "" && of == "" {
			of = data
		} else {
			words = append(words, word)
		}
	}

	return words, of
}

func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}

		return -1
	}, text)
}

var (
	between = strings.NewReplacer(" ", "", "_", "", "-", "", ".", "", "/", "", "|", "")
	splits  = strings.NewReplacer("training", "train", "validation", "val", "valid", "val", "evaluation", "eval")
	shorter = strings.NewReplacer("accuracy", "acc")
)

// PlainName is a metric's name in lower case, without separators, with the short word for its
// data set in front: val_loss, Validation Loss and Loss/val are alike.
func PlainName(name string) string {
	name = strings.ToLower(name)
	if at := strings.LastIndexAny(name, betweenWords); at > 0 && dataOf[strings.TrimRight(name[at+1:], "0123456789")] != "" {
		name = name[at+1:] + name[:at]
	}

	return splits.Replace(between.Replace(name))
}
