package metrics

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth/internal/failure"
)

// best is the meaning of the words for a value that is not the newest.
const best = "best"

// splits are the words for the data that a metric is of, and for values that are not the newest,
// by what they mean.
var splits = map[string]string{
	"train": "train", "training": "train", "test": "test", "testing": "test", "val": "val", "valid": "val", "validation": "val", "dev": "val",
	"eval": "eval", "evaluation": "eval", "best": best, "previous": best, "target": best,
}

var (
	// fillers are words of a name that change nothing.
	fillers = words("final current new latest last epoch epochs run set data model metrics results")
	// means are words of a name that say that it is a mean.
	means = words("average avg mean total overall")
	// joints end what is before a name.
	joints = words("and or with at to is are the an got reached achieved then but here done finished completed improved result results INFO DEBUG WARNING ERROR")
	// counting words stand before a number that belongs to no name.
	counting = words("epoch epochs episode episodes step steps iter iters iteration iterations batch round fold trial run seed update")
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
	base  string // its words, but for its data's and for fillers
	split string // by its meaning; empty = it names no data
	mean  bool
}

// partsOf takes a name apart. The objective's own words are no fillers.
func partsOf(name string, own map[string]bool) (p parts) {
	after := false // a split: a number there counts data sets

	for word := range strings.FieldsFuncSeq(strings.ToLower(name), isBetween) {
		split := splits[strings.TrimRight(word, digits)]
		count := after && isWhole(word) && !own[word]
		after = split != "" && p.split == ""

		switch {
		case after:
			p.split = split
		case own[word]:
			p.base += word
		case count, fillers[word]:
		case means[word]:
			p.mean = true
		default:
			p.base += word
		}
	}

	return p
}

func isBetween(r rune) bool { return strings.ContainsRune(" _-./|", r) }

const digits = "0123456789"

func isWhole(text string) bool { return strings.Trim(text, digits) == "" }

// within adds to a name what its line says of it: the data that it is of, or that it is the best.
func within(label, name string) string {
	if label == "" || label != best && partsOf(name, nil).split != "" {
		return name
	}

	return label + " " + name
}

// labelOf returns the split that a name says of the names behind it, as "Test set:", "val loss: 0.4"
// and "Best epoch: 3" do; empty = none.
func labelOf(name, number string) string {
	first, _, _ := strings.Cut(name, " ")

	label := splits[strings.ToLower(first)]
	measures := partsOf(name, nil).base != "" // the name has more than a split: "val loss"

	if measures == isWhole(number) || measures && label == best { // "best=0.28" is a metric of its own
		return ""
	}

	return label
}

// target is the objective, as names are compared with it.
type target struct {
	parts

	name  string
	plain string          // failure.PlainName of it
	own   map[string]bool // its words
	list  []string        // the same in order, in lower case
	near  *regexp.Regexp  // nearly of it
}

func newTarget(objective string) target {
	t := target{name: objective, plain: failure.PlainName(objective)}
	t.list = strings.FieldsFunc(strings.ToLower(objective), isBetween)
	t.own = words(strings.Join(t.list, " "))
	t.parts, t.near = partsOf(objective, t.own), nearly(t.list)

	return t
}

// rank says how near a name is to the objective's: 1 = nearest, 0 = another metric. For an
// objective that names no data a name without data comes first, then validation, then test,
// never training; of each first the value, then its mean.
func (t target) rank(name string) int {
	p := partsOf(name, t.own)

	rank := 1
	if p.mean {
		rank++
	}

	switch {
	case t.name == "":
		return 0
	case failure.PlainName(name) == t.plain:
		return 1
	case p.base != t.base, t.base == "", t.split != "" && p.split != t.split:
		return 0
	case p.split == t.split:
		return rank
	case p.split == "val", p.split == "eval":
		return rank + 2
	case p.split == "test":
		return rank + 4
	default:
		return 0
	}
}

// mayBeIn reports whether a line has the last word of the objective's name.
func (t target) mayBeIn(line string) bool {
	return len(t.list) > 0 && strings.Contains(strings.ToLower(line), t.list[len(t.list)-1])
}

// wordOf returns the word at the start of a text; empty = there is none.
func wordOf(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && !isLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !strings.ContainsRune("./@-", r)
	})
	if end < 0 {
		return text
	}

	return text[:end]
}

// nameOf returns the name that words make; empty = none.
func nameOf(list []string) string {
	name := strings.Trim(strings.Join(list, " "), " ./@-")
	if !hasLetter(name) {
		return ""
	}

	return name
}

// endsBefore reports whether the last of some words does not belong to a name behind it.
func (t target) endsBefore(list []string) bool {
	word := list[len(list)-1]

	switch {
	case t.own[strings.ToLower(word)]:
		return false
	case isWhole(word): // "Task 1 loss", but not "Epoch 1 loss"
		return len(list) == 1 || counting[strings.ToLower(list[len(list)-2])] || !hasLetter(list[len(list)-2])
	case !hasLetter(word), isMeasure(word), joints[word], joints[strings.ToLower(strings.TrimRight(word, "."))]:
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

func hasLetter(text string) bool { return strings.ContainsFunc(text, isLetter) }

func isLetter(r rune) bool { return unicode.IsLetter(r) && r != utf8.RuneError }
