package metrictext

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/berthml/berth/internal/failure"
)

// qualities are words before a name that make another metric of it, which may be the
// objective.
var qualities = map[string]Likeness{
	"best": bestSoFar, "mean": averaged, "avg": averaged, "average": averaged, "running": averaged, "total": averaged, "overall": averaged,
}

// isQuality reports whether a word says which of a metric's values another one is.
func isQuality(word string) bool {
	return qualities[strings.ToLower(word)] > 0 || failure.IsAim(word)
}

// fillers are words of a name that change nothing: they say when it was. All others make
// another metric of it: the value loss is the critic's.
var fillers = words(`final finally current currently new newest now latest last end epoch epochs so far top1`)

// reports are what a program calls several metrics: val_metrics is of val.
const reports = `metrics result results scores stats logs`

// nouns belong to the split beside them: "Test set loss", "value val_loss".
var nouns, reportNouns = words(`set data split value values model ` + reports), words(reports)

// joints are words behind which a name begins: what is before them tells something else.
var joints = words(`and or with at to is are the a an has had have got reached achieved then but here result results done finished completed
	complete improved`)

// units are joints behind a number.
var units = words(`s sec secs second seconds ms us h min mins minutes hours kb mb gb KB MB GB kB KiB MiB GiB percent samples images steps it`)

// verbs may stand between a name and its sign.
var verbs = words(`is are was`)

// levels are a logger's, behind which its name may be.
var levels = words(`DEBUG INFO WARN WARNING ERROR CRITICAL FATAL`)

// counting are words that say when, by the number behind them. That of another word belongs to
// the name: the top 5 accuracy, or the loss of task 1.
var counting = words(`epoch epochs ep e step steps iter iters iteration iterations it batch round fold trial run seed attempt episode
	update gen generation`)

var (
	// counted is a word that counts like a number: step_5, 3.2s, 第3轮.
	counted = regexp.MustCompile(`(?i)^(?:(?:epochs?|ep|e|steps?|iter(?:ation)?s?|it|batch|round|fold)[_#-]?\d[\d.,/_-]*|\d.*|#\d+|\p{Han}\d+\p{Han}{1,2})$`)
	// numbered is a name that begins with a number: 3D mAP, 5-shot accuracy.
	numbered = regexp.MustCompile(`^\d+[_-]?\pL{3,}|^\d[dD]$`)
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
	phrase    []string        // all words directly before the name, as they are
	named     map[string]bool // the names that had this split
	fresh     bool            // no name had it yet
	headed    bool            // a colon is directly behind it
	level     bool            // a logger's level was the word before
	logged    bool            // it was before the split: that may be the logger's name

	begins  bool // the next word is the first one behind a sign
	leads   bool // the quality was
	number  bool // a number was the word before
	ofSplit bool // the split or a noun of it was
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
	w.others, w.phrase, w.level, w.logged, w.ofSplit, w.begins = nil, nil, false, false, false, true

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
			w.others, w.phrase = nil, nil
		}

		w.begins = false
		text = text[to:]
	}
}

// between takes in what is between two words. Anything but a space ends a name.
func (w *lineWords) between(text string) {
	if text == "" || text == " " {
		return
	}

	w.headed = w.headed || w.ofSplit && strings.HasPrefix(text, ":")
	w.weak = w.weak || strings.Contains(text, "|") || w.fresh && !w.headed && strings.ContainsAny(text, ",;") || w.logged && strings.ContainsAny(text, ":|])")
	w.phrase, w.begins, w.number, w.ofSplit = nil, true, false, false

	switch {
	case strings.HasPrefix(text, ":") && len(w.qualities) > 0 && (w.leads || len(w.others) == 0):
		w.others, w.holds = nil, true
	case strings.ContainsAny(text, "|,;)"), len(w.others) > 0:
		w.forget()
	}
}

// forget ends the words of a name. What they told may be what the split was about.
func (w *lineWords) forget() {
	w.weak = w.weak || slices.ContainsFunc(w.others, telling)
	w.qualities, w.others, w.phrase, w.holds = nil, nil, nil, false
}

// telling reports whether a word makes another metric of a name.
func telling(word string) bool { return !fillers[failure.PlainName(word)] }

func (w *lineWords) word(word string) {
	stop := strings.HasSuffix(word, ".")
	word = strings.TrimRight(strings.TrimSuffix(word, "'s"), ".'-")
	lower := strings.ToLower(word)
	behindLevel, behindNumber, ofSplit := w.level, w.number, w.ofSplit
	of, ofReport := withoutReport(word)
	w.level, w.number, w.ofSplit = levels[word], false, false
	w.phrase = append(w.phrase[max(len(w.phrase)-mostWords, 0):], word)

	const abbreviated = len("valid") // "Val. loss", "Adj. R2"

	switch {
	case splitWord.MatchString(of):
		if stop = stop && len(word) > abbreviated; stop {
			w.forget()
		}

		w.split, w.weak, w.fresh, w.headed, w.logged, w.named, w.ofSplit = of, stop, true, false, behindLevel, nil, true
	case isQuality(of) && (ofReport || !slices.ContainsFunc(w.others, telling)):
		w.leads = w.begins || w.leads && len(w.qualities) > 0
		w.qualities = append(w.qualities, of)
	case ofSplit && nouns[lower]:
		w.ofSplit = true
	case strings.Trim(word, "/'_") == "":
		w.forget()
	case behindLevel && (strings.Contains(word, "_") || word == "root"), joints[lower] && (len(word) > 1 || !w.begins && word == lower), w.level,
		behindNumber && units[word]:
		w.others = append(w.others, word)
		w.forget()
	case counted.MatchString(word) && (!numbered.MatchString(word) || units[strings.TrimLeft(word, "0123456789")]):
		w.number = true

		if len(w.others) == 1 && strings.Trim(word, "0123456789") == "" && !counting[strings.ToLower(w.others[0])] { // no "loss after 100"
			w.others[0] += " " + word

			return
		}

		w.forget()
	case stop && (!w.begins || len(word) > abbreviated), strings.ContainsAny(strings.Trim(word, "._/"), "./"), strings.HasPrefix(word, "__"):
		w.others = append(w.others, word)
		w.forget()
	default:
		w.others = append(w.others[max(len(w.others)-mostWords, 0):], word)
	}
}

// withoutReport is what several metrics are of by their name: val of val_metrics.
func withoutReport(word string) (of string, found bool) {
	at := strings.LastIndexByte(word, '_')
	if at <= 0 || !reportNouns[strings.ToLower(word[at+1:])] {
		return word, false
	}

	return word[:at], true
}

// inWord reports whether a character may be in a word, or in what is no word by it:
// data/train, test.py, --dev.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._/'-", r)
}

// name is a name with the words that are before it. Beside it, in parentheses, may be
// another, as in "Accuracy (val)".
func (w *lineWords) name(printed, inParentheses string) metricName {
	if last := len(w.others) - 1; last >= 0 && verbs[strings.ToLower(printed)] { // "The accuracy is: 0.9"
		printed, w.others, w.phrase = w.others[last], w.others[:last], w.phrase[:max(len(w.phrase)-1, 0)]
	}

	n := metricName{quality: strings.Join(w.qualities, " ")}
	if len(w.phrase) > 0 {
		n.phrase = strings.Join(w.phrase, " ") + " " + printed
	}

	own := (w.split != "" || len(w.others) > 0 || inParentheses != "") && ownSplit.MatchString(printed)
	others := slices.DeleteFunc(w.others, func(word string) bool { return !telling(word) || own && nouns[strings.ToLower(word)] })
	n.bare = strings.Join(append(others, printed), " ")
	key := strings.ToLower(n.bare)

	if !w.fresh && w.named[key] {
		w.split = ""
	}

	if w.named == nil {
		w.named = make(map[string]bool)
	}

	n.split, n.weak, w.fresh, w.named[key], w.number = w.split, w.weak, false, true, true

	switch {
	case inParentheses == "":
	case splitWord.MatchString(inParentheses):
		n.split, n.weak = inParentheses, false
	case isQuality(inParentheses):
		n.quality = inParentheses
	default:
		n.bare += " (" + inParentheses + ")"
	}

	if own {
		n.split = ""
	}

	n.full = strings.Join(strings.Fields(n.quality+" "+n.split+" "), " ")
	if n.full == "" {
		return metricName{full: n.bare, phrase: n.phrase}
	}

	n.full += " " + n.bare

	return n
}
