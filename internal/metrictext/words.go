package metrictext

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// qualities are words before a name that make another metric of it; 0 = one that is
// never the objective.
var qualities = map[string]Likeness{
	"best": bestSoFar, "mean": averaged, "avg": averaged, "average": averaged, "running": averaged, "total": averaged, "overall": averaged,
	"min": 0, "max": 0, "minimum": 0, "maximum": 0, "lowest": 0, "highest": 0, "delta": 0, "δ": 0, "target": 0,
	"prev": 0, "previous": 0, "initial": 0, "was": 0, "from": 0,
}

// fillers are words of a name that change nothing: they say when it was.
var fillers = words(`final finally current currently new newest now latest last end epoch epochs model value values top1 top-1`)

// dataWords are fillers that leave the split before them what it is: "Test set: loss 0.1".
var dataWords = words(`set data split metrics so far`)

// joints are words behind which a name begins: what is before them tells something else, as
// the unit of the value before does.
var joints = words(`and or with at to is are the a an has had have got reached achieved then but here result results done finished root
	s sec secs second seconds ms us h mins minutes hours kb mb gb kib mib gib percent samples images steps`)

// verbs may stand between a name and its sign.
var verbs = words(`is are was`)

// levels are a logger's, behind which its name may be.
var levels = words(`DEBUG INFO WARN WARNING ERROR CRITICAL FATAL`)

// numbered are words whose number belongs to them: the top 5 accuracy is another than the
// accuracy of epoch 5.
var numbered = words(`top class label`)

var (
	// counted is a word that counts like a number: step_5, 3.2s. A 3D metric is a name.
	counted = regexp.MustCompile(`(?i)^(?:epochs?|ep|e|steps?|iter(?:ation)?s?|it|batch|round|fold|rank)?[_#-]?\d.*$`)
	twoD    = regexp.MustCompile(`^\d[dD]$`)
)

// mostWords belong to a name at most.
const mostWords = 5

// lineWords are the words of a line that belong to the names behind them.
//
//   - A split holds for all names up to the next one, or until a name comes again: "val loss:
//     0.4 acc: 0.9" has two of val, "train acc: 0.9, acc: 0.8" one of train.
//   - A quality holds for the next name, and behind a colon for the names with only commas between.
//   - All other words belong to the name, back to a number, a sign or a joint: "KL loss" is
//     another metric than loss.
type lineWords struct {
	split     string
	weak      bool // something is between it and the names: it may be about something else
	qualities []string
	holds     bool            // a colon is behind the quality: it is for the next name, too
	others    []string        // directly before the name
	named     map[string]bool // the names that had this split
	fresh     bool            // no name had it yet
	level     bool            // a logger's level was the word before
	logged    bool            // it was before the split: that may be the logger's name
}

func words(list string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}

	return set
}

// pass takes in what is between two pairs.
func (w *lineWords) pass(text string) {
	w.others, w.level, w.logged = nil, false, false

	if w.holds && strings.Trim(text, " \t,") == "" {
		return
	}

	w.qualities, w.holds = nil, false

	for text != "" {
		from := strings.IndexFunc(text, inWord)
		if from < 0 {
			from = len(text)
		}

		if w.between(text[:from]); from == len(text) {
			return
		}

		value := strings.HasSuffix(text[:from], "=") // "net=small acc=0.9"
		text = text[from:]

		to := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		if to < 0 {
			to = len(text)
		}

		if w.word(text[:to]); value {
			w.others = nil
		}

		text = text[to:]
	}
}

// between takes in what is between two words. Anything but a space ends a name.
func (w *lineWords) between(text string) {
	if text == "" || text == " " {
		return
	}

	w.weak = w.weak || strings.Contains(text, "|") || w.fresh && strings.ContainsAny(text, ",;") || w.logged && strings.ContainsAny(text, ":|])")

	switch {
	case strings.ContainsAny(text, "|,;)"), len(w.others) > 0:
		w.forget()
	case strings.HasPrefix(text, ":"):
		w.holds = w.holds || len(w.qualities) > 0
	}
}

// forget ends the words of a name. What they told may be what the split was about.
func (w *lineWords) forget() {
	w.weak = w.weak || slices.ContainsFunc(w.others, func(word string) bool { return !dataWords[strings.ToLower(word)] })
	w.qualities, w.others, w.holds = nil, nil, false
}

func (w *lineWords) word(word string) {
	stop := strings.HasSuffix(word, ".")
	word = strings.TrimRight(strings.TrimSuffix(word, "'s"), ".'-")
	lower := strings.ToLower(word)
	behindLevel := w.level
	_, quality := qualities[lower]
	w.level = levels[word]

	const abbreviated = len("valid")

	switch {
	case splitWord.MatchString(word):
		if stop = stop && len(word) > abbreviated; stop {
			w.forget()
		}

		w.split, w.weak, w.fresh, w.logged, w.named = word, stop, true, behindLevel, nil
	case quality:
		w.qualities = append(w.qualities, word)
	case word == "":
		if len(w.others) > 0 {
			w.forget()
		}
	case behindLevel && strings.Contains(word, "_"), joints[lower], w.level, stop, strings.ContainsAny(strings.Trim(word, "._/"), "./"), strings.HasPrefix(word, "__"):
		w.others = append(w.others, word)
		w.forget()
	case counted.MatchString(word) && !twoD.MatchString(word):
		if last := len(w.others) - 1; last >= 0 && numbered[strings.ToLower(w.others[last])] {
			w.others[last] += " " + word

			return
		}

		w.forget()
	default:
		w.others = append(w.others[max(len(w.others)-mostWords, 0):], word)
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
	if last := len(w.others) - 1; last >= 0 && verbs[strings.ToLower(printed)] { // "The accuracy is: 0.9"
		printed, w.others = w.others[last], w.others[:last]
	}

	others := slices.DeleteFunc(w.others, func(word string) bool { return fillers[strings.ToLower(word)] || dataWords[strings.ToLower(word)] })
	n := metricName{bare: strings.Join(append(others, printed), " "), quality: strings.Join(w.qualities, " ")}
	key := strings.ToLower(n.bare)

	if !w.fresh && w.named[key] {
		w.split = ""
	}

	if w.named == nil {
		w.named = make(map[string]bool)
	}

	n.split, n.weak, w.fresh, w.named[key] = w.split, w.weak, false, true

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
