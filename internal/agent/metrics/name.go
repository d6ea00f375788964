package metrics

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth/internal/failure"
)

// rank is how near a printed name is to the objective's: the lower the nearer, 0 = another metric.
type rank int

// The ranks. In a program that prints several, the nearest is the objective.
const (
	asNamed      rank = iota + 1
	sameWords         // "Val Loss" for val_loss
	sameMean          // "Average val loss" for val_loss
	ofValidation      // "val acc" for acc
	ofTest            // "Test accuracy" for accuracy
	ofMean            // "Test set: Average loss" for loss
	ofTraining        // "Train: acc=0.5" for acc, never "train acc"
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
	// reports are words behind a split that change nothing: "Test set loss", val_metrics.
	reports = words("set data metrics result results scores stats")
	// labels may stand beside a split: "Test set:", "Train Epoch: 1", "Validation results:".
	labels = words("set data model result run epoch epochs error metrics result results scores phase step")
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
		split := splits[strings.TrimRight(word, "0123456789")]

		switch {
		case split != "" && p.split == "":
			p.split, after = split, true

			continue
		case after && !own[word] && (strings.Trim(word, "0123456789") == "" || reports[word]), fillers[word] && !own[word]:
		case means[word] && !own[word]:
			p.mean = true
		default:
			p.base += word
		}

		after = false
	}

	return p
}

func isBetween(r rune) bool { return strings.ContainsRune(" _-./|", r) }

// target is the objective, as names are compared with it.
type target struct {
	parts

	name  string
	plain string          // failure.PlainName of it
	own   map[string]bool // its words
}

func newTarget(objective string) target {
	t := target{name: objective, plain: failure.PlainName(objective)}
	t.own = words(strings.Join(strings.FieldsFunc(strings.ToLower(objective), isBetween), " "))
	t.parts = partsOf(objective, t.own)

	return t
}

// rank compares a name, which a line's split is about unless the name says its data itself.
func (t target) rank(name, around string, label bool) rank {
	if t.name == "" {
		return 0
	}

	if around == "" && name == t.name {
		return asNamed
	}

	p := partsOf(name, t.own)
	named := p.split != ""

	if around != "" && labelOf(around) == "" { // "Best: val_acc=0.9"
		return 0
	}

	if !named {
		p.split = splits[strings.TrimRight(strings.ToLower(around), "0123456789")]
	}

	last := name[strings.LastIndexByte(name, ' ')+1:]

	switch same := p.base == t.base && t.base != ""; {
	case failure.PlainName(name) == t.plain && (around == "" || named || t.split != ""):
		return sameWords
	case last == t.name && strings.Contains(last, "_") && aimOf(name) == "": // "small val_acc"
		return sameMean
	case !same, t.split != "" && p.split != t.split:
		return 0
	case p.split == t.split && p.mean:
		return sameMean
	case p.split == t.split:
		return sameWords
	case named && strings.Contains(last, "_"), p.split == "train" && (named || !label): // val_loss is not loss
		return 0
	case p.split == "train":
		return ofTraining
	case p.mean:
		return ofMean
	case p.split == "test":
		return ofTest
	default:
		return ofValidation
	}
}

// mostWords belong to a name.
const mostWords = 6

// nameBefore returns the name at the end of a text, with the words before it, back to a
// sign, a number or a joint. split is what stands behind it in parentheses: "Accuracy (val)".
func nameBefore(text string) (name, split string) {
	text = strings.TrimRight(text, " \t*`")

	if last := len(text) - 1; last > 0 && (text[last] == '"' || text[last] == '\'') {
		open := strings.LastIndexByte(text[max(last-NameBytes, 0):last], text[last]) + max(last-NameBytes, 0)
		if open < max(last-NameBytes, 0) || !startsName(text[open+1:last]) {
			return "", ""
		}

		return text[open+1 : last], ""
	}

	if open := strings.LastIndexByte(text, '('); strings.HasSuffix(text, ")") && open > 0 {
		inside := text[open+1 : len(text)-1]
		if splits[strings.ToLower(inside)] != "" {
			split = inside
		}

		text = strings.TrimRight(text[:open], " ")
	}

	from := len(text)

	for range mostWords {
		start := wordBefore(text, from, len(text))
		if start < 0 {
			break
		}

		from = start
	}

	if name = strings.TrimRight(text[from:], "./@-"); name == "" || strings.HasSuffix(name, ".py") || strings.HasSuffix(text[:from], "'") || strings.HasSuffix(text[:from], "@") {
		return "", ""
	}

	return strings.ReplaceAll(name, "'s ", " "), split
}

// wordBefore returns where the word before a place begins; -1 = none belongs to the name that
// begins there, and ends at end.
func wordBefore(text string, at, end int) int {
	before := strings.TrimRight(text[:at], " ")
	if at < end && (len(before) == at || at-len(before) > 1) || before == "" {
		return -1
	}

	from := len(before)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(before[:from])
		if !inName(r) && (r != '\'' || !strings.HasPrefix(before[from:], "s")) {
			break
		}

		from -= size
	}

	word := strings.TrimLeft(before[from:], "./@-'")
	from = len(before) - len(word)

	switch letters := strings.Count(strings.Map(letter, word), "a"); {
	case letters == 0 && at < end && strings.Trim(word, "0123456789") == "" && word != "": // "Task 1 loss"
		if start := wordBefore(before, from, len(before)); start >= 0 && startsName(before[start:]) && !counting[strings.ToLower(strings.TrimSpace(before[start:from]))] {
			return start
		}

		return -1
	case letters == 0, letters < 3 && word[0] >= '0' && word[0] <= '9', at < end && (joints[word] || joints[strings.ToLower(strings.TrimRight(word, "."))]), at < end && strings.HasSuffix(text[:from], "="):
		return -1
	case at < end && strings.HasSuffix(word, ".") && len(word) > len("eval."): // the end of a sentence
		return -1
	}

	return from
}

// letter maps each letter to a, and all else to nothing.
func letter(r rune) rune {
	if unicode.IsLetter(r) && r != utf8.RuneError {
		return 'a'
	}

	return -1
}

func startsName(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)

	return r == '_' || unicode.IsLetter(r) && r != utf8.RuneError
}

func inName(r rune) bool {
	return r == '_' || unicode.IsLetter(r) && r != utf8.RuneError || unicode.IsNumber(r) || unicode.IsMark(r) || strings.ContainsRune("./@-", r)
}

// labelOf returns the split of a label: "Test set", "Train Epoch", "val_metrics"; empty = the
// words are none.
func labelOf(name string) (split string) {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ' ' || r == '_' }) {
		switch lower := strings.ToLower(strings.TrimRight(word, "0123456789")); {
		case splits[lower] != "" && split == "":
			split = word
		case lower != "" && !labels[lower]:
			return ""
		}
	}

	return split
}

// aimOf returns the word of a label by which what follows is no newest value: "Best epoch",
// "Goal"; empty = it has none.
func aimOf(name string) string {
	for word := range strings.FieldsFuncSeq(name, isBetween) {
		if strings.EqualFold(word, "best") || failure.IsAim(word) {
			return word
		}
	}

	return ""
}

// withoutFillers leaves out the words before a name that change nothing: "Final val_acc".
func (t target) withoutFillers(name string) string {
	for {
		first, rest, several := strings.Cut(name, " ")
		if lower := strings.ToLower(first); !several || !fillers[lower] || t.own[lower] {
			return name
		}

		name = rest
	}
}
