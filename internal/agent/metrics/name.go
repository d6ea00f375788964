package metrics

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth/internal/failure"
)

// splits are the words for the data that a metric is of, by what they mean.
var splits = map[string]string{
	"train": "train", "training": "train", "test": "test", "testing": "test", "val": "val", "valid": "val", "validation": "val", "dev": "val",
	"eval": "eval", "evaluation": "eval",
}

var (
	// fillers are words of a name that change nothing.
	fillers = words("final current new latest last epoch epochs")
	// means are words of a name that say that it is a mean.
	means = words("average avg mean total overall")
	// joints end what is before a name.
	joints = words("and or with at to is are the an got reached achieved then but here done finished completed improved result results INFO DEBUG WARNING ERROR")
	// counting words stand before a number that belongs to no name.
	counting = words("epoch epochs step steps iter iters iteration iterations batch round fold trial run seed update")
	// runs are those of what has batches.
	runs = words("epoch epochs fold run trial seed episode repeat gen generation")
	// reports are words behind a split that change nothing: "Test set loss", val_metrics.
	reports = words("set data model metrics result results scores stats phase step")
)

func words(text string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}

	return set
}

// parts are what a name says.
type parts struct {
	base  string // its words, without those for its data and those that change nothing
	split string // by its meaning; empty = it names no data
	mean  bool
}

// partsOf takes a name apart. What the objective has itself is no filler.
func partsOf(name string, own map[string]bool) (p parts) {
	after := false // a split: a number there counts data sets

	for word := range strings.FieldsFuncSeq(strings.ToLower(name), isBetween) {
		split := splits[strings.TrimRight(word, digits)]

		switch {
		case split != "" && p.split == "":
			p.split, after = split, true

			continue
		case own[word]:
			p.base += word
		case after && (reports[word] || isWhole(word)), fillers[word]:
		case means[word]:
			p.mean = true
		default:
			p.base += word
		}

		after = false
	}

	return p
}

func isBetween(r rune) bool { return strings.ContainsRune(" _-./|", r) }

const digits = "0123456789"

func isWhole(text string) bool { return strings.Trim(text, digits) == "" }

// within is a name that a line says more about: which data it is of, or that it is the best.
func within(around, name string) string {
	if around == "" || splits[around] != "" && partsOf(name, nil).split != "" {
		return name
	}

	return around + " " + name
}

// splitOf is the data that a label is about: "Test set", "Train Epoch", "val_metrics"; empty = it is
// none.
func splitOf(label string) string {
	if p := partsOf(label, nil); p.base == "" {
		return p.split
	}

	return ""
}

// labelOf returns what a label says about the names behind it: its data, or the word by which they
// are no newest values, as in "Best epoch". Empty = it is none.
func labelOf(name string) string {
	if split := splitOf(name); split != "" {
		return split
	}

	for word := range strings.FieldsFuncSeq(name, isBetween) {
		if strings.EqualFold(word, "best") || failure.IsAim(word) {
			return word
		}
	}

	return ""
}

// target is the objective, as names are compared with it.
type target struct {
	parts

	name  string
	plain string          // failure.PlainName of it
	own   map[string]bool // its words
	last  string          // of its words, in lower case
	near  *regexp.Regexp  // nearly of it
}

func newTarget(objective string) target {
	t := target{name: objective, plain: failure.PlainName(objective)}

	list := strings.FieldsFunc(strings.ToLower(objective), isBetween)
	t.own = words(strings.Join(list, " "))
	t.parts = partsOf(objective, t.own)

	if len(list) > 0 {
		t.last, t.near = list[len(list)-1], nearly(list)
	}

	return t
}

// rank says how near a name is to the objective's: 1 = as it is named, 0 = another metric. In a
// program that prints several, the lowest is the objective: its words, a mean of it; and for an
// objective that names no data that of validation, then of test, never of training.
func (t target) rank(name string) int {
	p := partsOf(name, t.own)
	last := name[strings.LastIndexByte(name, ' ')+1:]

	far := 2
	if p.mean {
		far++
	}

	switch {
	case t.name == "":
		return 0
	case name == t.name:
		return 1
	case failure.PlainName(name) == t.plain:
		return 2
	case p.base != t.base || t.base == "", p.split != t.split && t.split != "":
		return 0
	case p.split == t.split:
		return far
	case p.split == "train", strings.Contains(last, "_") && partsOf(last, nil).split != "": // val_loss is not loss
		return 0
	case p.split == "test":
		return far + 4
	default:
		return far + 2
	}
}

// mayBeIn reports whether a line has the last word of the objective's name.
func (t target) mayBeIn(line string) bool {
	if t.last == "" {
		return false
	}

	_, rest, found := strings.Cut(strings.ToLower(line), t.last)
	for found && rest != "" && rest[0] >= 'a' && rest[0] <= 'z' {
		_, rest, found = strings.Cut(rest, t.last)
	}

	return found
}

// mostWords belong to a name.
const mostWords = 6

// nameBefore returns the name at the end of a text: words with a space between them, back to
// another sign, to a number that is none of the name, or to a joint. "Accuracy (val)" is one.
func (t target) nameBefore(text string) string {
	text = strings.ReplaceAll(strings.TrimRight(text, " \t*`\"'│|"), "'s ", " ")
	behind := ""

	if at := strings.LastIndexByte(text, '('); at > 0 && strings.HasSuffix(text, ")") {
		if inside := text[at+1 : len(text)-1]; splits[strings.ToLower(inside)] != "" {
			behind = " " + inside
		}

		text = strings.TrimRight(text[:at], " ")
	}

	from := strings.LastIndexFunc(text, func(r rune) bool { return r != ' ' && !inName(r) })
	if from >= 0 {
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}

	from = max(from, strings.LastIndex(text, "  ")+1, 0)
	list := strings.Fields(text[from:])

	if from > 0 && text[from-1] == '=' && len(list) > 1 { // net=small acc
		list = list[1:]
	}

	for i := len(list) - 2; i >= 0; i-- {
		if endsBefore(list[:i+1]) {
			list = list[i+1:]

			break
		}
	}

	list = list[max(len(list)-mostWords, 0):]
	for len(list) > 1 && fillers[strings.ToLower(list[0])] && !t.own[strings.ToLower(list[0])] {
		list = list[1:]
	}

	name := strings.Trim(strings.Join(list, " "), "./@-")
	if strings.IndexFunc(name, isLetter) < 0 || isMeasure(name) {
		return ""
	}

	return name + behind
}

// endsBefore reports whether the last of some words is none of a name behind it.
func endsBefore(list []string) bool {
	word := list[len(list)-1]

	switch {
	case isWhole(word): // "Task 1 loss", but not "Epoch 1 loss"
		return len(list) == 1 || counting[strings.ToLower(list[len(list)-2])] || strings.IndexFunc(list[len(list)-2], isLetter) < 0
	case strings.IndexFunc(word, isLetter) < 0, isMeasure(word), joints[word], joints[strings.ToLower(strings.TrimRight(word, "."))]:
		return true
	default: // the end of a sentence, longer than an abbreviation
		return strings.HasSuffix(word, ".") && len(word) > len("eval.")
	}
}

// isMeasure reports whether a word is a number with a unit: 12ms, 3.2it/s.
func isMeasure(word string) bool {
	unit, _, _ := strings.Cut(strings.TrimLeft(word, digits+"."), "/")

	return len(unit) < min(len(word), 3)
}

func isLetter(r rune) bool { return unicode.IsLetter(r) && r != utf8.RuneError }

func startsName(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)

	return r == '_' || isLetter(r)
}

func inName(r rune) bool {
	return r == '_' || isLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || strings.ContainsRune("./@-", r)
}
