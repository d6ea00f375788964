package runtrial

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// sighting is a metric that was found in a line, before its name and step are settled.
type sighting struct {
	point    berth.MetricPoint // without name, step and time
	name     metricName
	step     *int64 // that the line names; nil = it names none
	own      bool   // found by the spec's own pattern
	likeness likeness
}

// metricName is a metric's name as a program prints it: "Best val Acc" is the best of Acc,
// of validation data.
type metricName struct {
	full    string // with all words that belong to it
	bare    string // without them; empty = full has none
	split   string // the word that says of which data it is: "val"; empty = none does
	weak    bool   // the split is a word of the line, which may not be about this metric
	quality string // the words that say which of its values it is: "Best"; empty = the newest
}

// likeness is how much a printed name is like the objective's: the lower the more.
type likeness int

// The likenesses. From doubtful on a metric is the objective, beside its own name, only
// where nobody reports the objective.
const (
	asNamed      likeness = iota + 1
	sameLetters           // "Val Loss" for val_loss
	ofValidation          // "val acc" for acc
	ofTest                // "Test accuracy" for accuracy
	averaged              // "avg loss" for loss
	inTraining            // "Training: 100%|██| 9/9 [acc=0.5]" for acc, never "train acc"
	bestSoFar             // "Best val_acc" for val_acc

	doubtful = averaged
)

var (
	// splitWord is a word that says of which data a metric is: LightGBM's valid_1, too.
	splitWord = regexp.MustCompile(`^(?i:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)(?:[_-]?\d+)?$`)
	// ownSplit is such a word in a name: no other one says of which data it is.
	ownSplit = regexp.MustCompile(`(?i)(?:^|[_./|-])(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)\d*(?:$|[_./|@-])`)
)

// qualities are words before a name that make another metric of it; 0 = one that is
// never the objective.
var qualities = map[string]likeness{
	"best": bestSoFar, "mean": averaged, "avg": averaged, "average": averaged, "running": averaged,
	"min": 0, "max": 0, "minimum": 0, "maximum": 0, "lowest": 0, "highest": 0, "prev": 0, "previous": 0, "delta": 0, "δ": 0, "target": 0,
}

// fillers are words between a split or a quality and a name that change nothing.
var fillers = map[string]bool{"set": true, "data": true, "split": true, "so": true, "far": true}

// like says how much the name is like the objective's; 0 = it is that of another metric.
func (n metricName) like(objective string) likeness {
	if n.full == objective {
		return asNamed
	}

	want := failure.PlainName(objective)

	switch {
	case failure.PlainName(n.full) == want:
		return sameLetters
	case n.bare == "":
		return 0
	}

	like := sameLetters

	for word := range strings.FieldsSeq(n.quality) {
		quality := qualities[strings.ToLower(word)]
		if quality == 0 {
			return 0
		}

		like = max(like, quality)
	}

	if failure.PlainName(n.split+n.bare) == want {
		return like
	}

	if failure.PlainName(n.bare) != want {
		return 0
	}

	switch split := strings.ToLower(n.split); {
	case strings.HasPrefix(split, "val"):
		return max(like, ofValidation)
	case !strings.HasPrefix(split, "train"):
		return max(like, ofTest)
	case n.weak:
		return max(like, inTraining)
	default:
		return 0
	}
}

// lineWords are the words of a line that belong to the names behind them. A split holds
// for all names up to the next one: "val loss: 0.4 acc: 0.9" has two of val.
type lineWords struct {
	split     string
	weak      bool // something was between it and the names
	qualities []string
	holds     bool // a colon is behind the quality: it is for the next name, too
}

// pass takes in what is between two pairs.
func (w *lineWords) pass(text string) {
	if w.holds && strings.Trim(text, " \t,") == "" {
		return
	}

	w.qualities, w.holds = nil, false

	for text != "" {
		from := strings.IndexFunc(text, inWord)
		if from < 0 {
			from = len(text)
		}

		between := text[:from]
		if strings.ContainsAny(between, "|,;)") {
			w.qualities, w.holds = nil, false
		}

		w.weak = w.weak || strings.Contains(between, "|")

		if w.holds = w.holds || len(w.qualities) > 0 && strings.HasPrefix(between, ":"); from == len(text) {
			return
		}

		text = text[from:]

		to := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		if to < 0 {
			to = len(text)
		}

		w.word(text[:to])
		text = text[to:]
	}
}

func (w *lineWords) word(word string) {
	word = strings.TrimRight(strings.TrimSuffix(word, "'s"), ".'-")
	lower := strings.ToLower(word)

	switch _, quality := qualities[lower]; {
	case splitWord.MatchString(word):
		w.split, w.weak = word, false
	case quality:
		w.qualities = append(w.qualities, word)
	case fillers[lower]:
	case strings.ContainsFunc(word, unicode.IsLetter):
		w.weak, w.qualities, w.holds = true, nil, false
	case word != "":
		w.qualities, w.holds = nil, false
	}
}

// inWord reports whether a character may be in a word, or in what is no word by it:
// data/train, test.py, --dev.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_./'-", r)
}

// name is a name with the words that are before it. Behind it, in parentheses, may be
// another, as in "Accuracy (val)".
func (w *lineWords) name(printed, inParentheses string) metricName {
	n := metricName{bare: printed, split: w.split, weak: w.weak, quality: strings.Join(w.qualities, " ")}

	switch _, quality := qualities[strings.ToLower(inParentheses)]; {
	case inParentheses == "":
	case splitWord.MatchString(inParentheses):
		n.split, n.weak = inParentheses, false
	case quality:
		n.quality = inParentheses
	default:
		n.bare += " (" + inParentheses + ")"
	}

	if n.split != "" && ownSplit.MatchString(printed) {
		n.split = ""
	}

	n.full = strings.Join(strings.Fields(n.quality+" "+n.split+" "), " ")
	if n.full == "" {
		return metricName{full: n.bare}
	}

	n.full += " " + n.bare

	return n
}
