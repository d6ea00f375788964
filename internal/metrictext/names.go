package metrictext

import (
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// sighting is a metric that was found in a line, before its name and step are settled.
type sighting struct {
	point    berth.MetricPoint // without name, step and time
	name     metricName
	step     *int64 // that the line names; nil = it names none
	rounded  bool   // that is an epoch which may be rounded
	own      bool   // found by the spec's own pattern
	likeness Likeness
}

// metricName is a metric's name as a program prints it: "Best val KL Loss" is the best of
// "KL Loss", of validation data.
type metricName struct {
	full    string // with all words that belong to it
	bare    string // without quality and split; empty = full has neither
	split   string // the word that says of which data it is: "val"; empty = none does
	weak    bool   // the split is a word of the line, which may not be about this metric
	phrase  string // as the program wrote it, where words are before it
	quality string // the words that say which of its values it is: "Best"; empty = the newest
}

// Likeness is how much a printed name is like the objective's: the lower the more.
type Likeness int

// The likenesses.
const (
	asNamed      Likeness = iota + 1
	sameLetters           // "Val Loss" for val_loss
	ofValidation          // "val acc" for acc
	ofTest                // "Test accuracy" for accuracy
	averaged              // "avg loss" for loss
	weakly                // "Training: 100%|██| 9/9 [acc=0.5]" for acc, never "train acc"
	bestSoFar             // "Best val_acc" for val_acc
)

// DoubtfulFrom is the likeness from which on a metric is the objective only where nobody
// else reports it. In a sweep that names no source a name in another form is doubtful, too:
// the exact one may be in a lower source, with all its curves.
func DoubtfulFrom(auto bool) Likeness {
	if auto {
		return sameLetters
	}

	return averaged
}

var (
	// splitWord is a word that says of which data a metric is: LightGBM's valid_1, too.
	splitWord = regexp.MustCompile(`^(?i:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)(?:[_-]?\d+)?$`)
	// ownSplit is such a word in a name: no other one says of which data it is.
	ownSplit = regexp.MustCompile(`(?i)(?:^|[_./|-])(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)\d*(?:$|[_./|@-])`)
)

// like says how much the name is like the objective's; 0 = it is that of another metric.
func (n metricName) like(objective string) Likeness {
	want := failure.PlainName(objective)
	weak := n.weak && n.split != ""

	switch {
	case n.full == objective && !weak:
		return asNamed
	case failure.PlainName(n.full) == want && !weak, n.isPhrase(want):
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

	bare, split := failure.PlainName(n.bare) == want, strings.ToLower(n.split)

	switch {
	case failure.PlainName(n.split+n.bare) == want:
		if weak {
			like = max(like, weakly)
		}

		return like
	case !bare:
		return 0
	case strings.HasPrefix(split, "val"):
		return max(like, ofValidation)
	case !strings.HasPrefix(split, "train"):
		return max(like, ofTest)
	case weak:
		return max(like, weakly)
	default:
		return 0
	}
}

// isPhrase reports whether a program wrote a name with the words before it, but for those
// that say when.
func (n metricName) isPhrase(want string) bool {
	for rest := n.phrase; rest != ""; {
		if failure.PlainName(rest) == want {
			return true
		}

		first, behind, _ := strings.Cut(rest, " ")
		if telling(first) {
			return false
		}

		rest = behind
	}

	return false
}

// in is the name of a metric in what a split holds, such as a dict behind "val:", unless
// the name says itself of which data it is.
func (n metricName) in(split string, weak bool) metricName {
	if split == "" || n.split != "" || ownSplit.MatchString(n.full) {
		return n
	}

	if n.bare == "" {
		n.bare = n.full
	}

	n.split, n.weak, n.full = split, weak, split+"/"+n.full

	return n
}

// dictName is what is before a dict.
var dictName = regexp.MustCompile(`(\pL[\pL_ ]{0,60}?)\s?[:=]\s*$`)

// about is the name of a metric in a dict, of which the program may say that it has something
// else of these metrics: loss_weights={"loss": 1.0}.
func (n metricName) about(before string) metricName {
	match := dictName.FindStringSubmatch(before[max(len(before)-numberBytes, 0):])
	if match == nil || !strings.Contains(match[1], n.full) {
		return n
	}

	others := slices.DeleteFunc(strings.FieldsFunc(match[1], func(r rune) bool { return r == ' ' || r == '_' }), func(word string) bool {
		return word == n.full || isQuality(word) || splitWord.MatchString(word) || !telling(word) || nouns[strings.ToLower(word)]
	})
	if len(others) == 0 {
		return n
	}

	return metricName{full: match[1] + "/" + n.full}
}

// validates reports whether the name says that it is of validation or test data.
func (n metricName) validates() bool {
	split := n.split
	if split == "" {
		split = ownSplit.FindString(n.full)
	}

	return split != "" && !strings.Contains(strings.ToLower(split), "train")
}
